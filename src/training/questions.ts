/** Scores of models by question, over all places of a job, with intervals over the units that the question samples. */
import { bootstrapInterval, type Interval } from '../utils/bootstrap.js';
import { medianOfSorted } from '../utils/sorted.js';
import { QUESTIONS, type Question, type QuestionErrors } from './report.js';

/** Candidates of a question: the served model, and simple baselines. */
const SCORED = ['model', 'mean', 'history', 'nearest', 'linear'] as const;
type Scored = (typeof SCORED)[number];

/** A question over all places and dates that ask it. */
export interface QuestionScore {
  question: Question;
  places: number;
  dates: number;
  /** Mean squared error over all values. */
  errors: Record<Scored, number>;
  /** 95 % interval of the error of the model, over the places, the dates, or both. Absent if these are fewer than six. */
  interval?: Interval;
  /** Without an interval: the error of the model on each date, or at each place if places are fewer than dates. */
  single?: { name: string; error: number }[];
  /** Median over the places of the root mean squared error of the model. */
  medianRmse: number;
  /** Number of places at which the model has a smaller error than a baseline. */
  better: Record<Exclude<Scored, 'model'>, number>;
}

/** `errors`: those of each place, by any name that is unique. Questions that no place asks are omitted. */
export function questionScores(errors: Readonly<Record<string, readonly QuestionErrors[]>>): QuestionScore[] {
  return QUESTIONS.flatMap((question) => {
    const rows = Object.entries(errors).flatMap(([place, all]) =>
      all.filter((one) => one.question === question && one.values > 0).map((one) => ({ place, ...one })),
    );
    return rows.length > 0 ? [scoreOf(question, rows)] : [];
  });
}

type Row = QuestionErrors & { place: string };

function scoreOf(question: Question, rows: readonly Row[]): QuestionScore {
  const places = [...new Set(rows.map(({ place }) => place))].sort();
  const dates = [...new Set(rows.map(({ datetime }) => datetime.slice(0, 10)))].sort();
  const cells = rows.map((row) => ({
    ...row,
    at: places.indexOf(row.place),
    on: dates.indexOf(row.datetime.slice(0, 10)),
  }));
  const error = (of: Scored, some: readonly QuestionErrors[] = rows) =>
    some.reduce((sum, row) => sum + row[of], 0) / some.reduce((sum, { values }) => sum + values, 0);
  const weighted = (weight: (cell: (typeof cells)[number]) => number) => {
    let squares = 0;
    let values = 0;
    for (const cell of cells) {
      squares += weight(cell) * cell.model;
      values += weight(cell) * cell.values;
    }
    return squares / values;
  };
  const samplesPlaces = question !== 'otherDates';
  const samplesDates = question !== 'otherGround' && question !== 'otherGroundKnown';
  const sizes = [...(samplesPlaces ? [places.length] : []), ...(samplesDates ? [dates.length] : [])];
  const interval = bootstrapInterval(sizes, (...drawn) => {
    const ofPlace = samplesPlaces ? drawn[0] : undefined;
    const ofDate = samplesDates ? drawn.at(-1) : undefined;
    return weighted(({ at, on }) => (ofPlace?.[at] ?? 1) * (ofDate?.[on] ?? 1));
  });
  const byPlace = places.map((place) => rows.filter((row) => row.place === place));
  const byDate = dates.map((day) => rows.filter((row) => row.datetime.startsWith(day)));
  const usesDates = samplesDates && (!samplesPlaces || dates.length <= places.length);
  const better = (than: Scored) => byPlace.filter((own) => error('model', own) < error(than, own)).length;
  return {
    question,
    places: places.length,
    dates: dates.length,
    errors: Object.fromEntries(SCORED.map((name) => [name, error(name)])) as QuestionScore['errors'],
    ...(interval
      ? { interval }
      : {
          single: (usesDates ? dates : places).map((name, i) => ({
            name,
            error: error('model', (usesDates ? byDate : byPlace)[i]),
          })),
        }),
    medianRmse: medianOfSorted(Float64Array.from(byPlace, (own) => Math.sqrt(error('model', own))).sort()),
    better: {
      mean: better('mean'),
      history: better('history'),
      nearest: better('nearest'),
      linear: better('linear'),
    },
  };
}
