/** Scores of models by question, over all places of a job, with intervals over the units that the question samples. */
import { bootstrapIntervals, type Interval } from '../utils/bootstrap.js';
import { medianOfSorted } from '../utils/sorted.js';
import { daysOf, parseDated, passesOf } from './dates.js';
import { type Skill, skillValue } from './evaluation.js';
import { QUESTIONS, type Question, type QuestionErrors } from './report.js';

/** Candidates of a question: the served model, and simple baselines. */
const SCORED = ['model', 'mean', 'history', 'nearest', 'linear'] as const;
type Scored = (typeof SCORED)[number];
/** Without `linear` if it was not scored. */
type OfEach<T> = Record<Exclude<Scored, 'linear'>, T> & { linear?: T };

/** A question over all places and dates that ask it. */
export interface QuestionScore extends Scores {
  question: Question;
}

export interface Scores {
  places: number;
  dates: number;
  /** Mean squared error over all values. */
  errors: OfEach<number>;
  /** How much of the error of the training mean each saves, with an interval as that of the error. */
  skill: OfEach<Skill>;
  /** 95 % interval of the error of the model, over the places, the dates, or both. Absent if these are fewer than six. */
  interval?: Interval;
  /** Without an interval: the error of the model on each date, or at each place if places are fewer than dates. */
  single?: { name: string; error: number }[];
  /** Median over the places of the root mean squared error of the model. */
  medianRmse: number;
  /** Number of places at which the model has a smaller error than a baseline. */
  better: Omit<OfEach<number>, 'model'>;
}

/** `errors`: those of each place, by any name that is unique. Questions that no place asks are omitted. */
export function questionScores(errors: Readonly<Record<string, readonly QuestionErrors[]>>): QuestionScore[] {
  return QUESTIONS.flatMap((question) => {
    const rows = Object.entries(errors).flatMap(([place, all]) =>
      all.filter((one) => one.question === question && one.values > 0).map((one) => ({ place, ...one })),
    );
    const samples = {
      places: question !== 'otherDates',
      dates: question !== 'otherGround' && question !== 'otherGroundKnown',
    };
    return rows.length > 0 ? [{ question, ...scoresOf(rows, samples) }] : [];
  });
}

/** Relative difference of errors that rounding explains: models compute with 32 bits. */
const ROUNDING = 1e-4;

type Row = Omit<QuestionErrors, 'question'> & { place: string };

/** `samples`: whether other places and other dates could have been drawn. */
export function scoresOf(rows: readonly Row[], samples: { places: boolean; dates: boolean }): Scores {
  const names = SCORED.filter((name) => rows.every((row) => row[name] !== undefined));
  const places = [...new Set(rows.map(({ place }) => place))].sort();
  const dayOf = ({ datetime }: Row) => daysOf(parseDated(datetime));
  // Days of one pass show the same state, so they are one unit.
  const passOf = passesOf(rows.map(dayOf));
  const dates = [...new Set(passOf.values())];
  const numbers = new Map([places, dates].flatMap((all) => all.map((name, i) => [name, i] as const)));
  const byPlace: Row[][] = places.map(() => []);
  const byDate: Row[][] = dates.map(() => []);
  const cells = rows.map((row) => {
    const at = numbers.get(row.place)!;
    const on = numbers.get(passOf.get(dayOf(row))!)!;
    byPlace[at]!.push(row);
    byDate[on]!.push(row);
    return { ...row, at, on };
  });
  const error = (of: Scored, some: readonly Row[] = rows) =>
    some.reduce((sum, row) => sum + row[of]!, 0) / some.reduce((sum, { values }) => sum + values, 0);
  /** The mean squared error of each name. */
  const weighted = (weight: (cell: (typeof cells)[number]) => number) => {
    const squares = names.map(() => 0);
    let values = 0;
    for (const cell of cells) {
      const times = weight(cell);
      for (const [n, name] of names.entries()) squares[n]! += times * cell[name]!;
      values += times * cell.values;
    }
    return squares.map((sum) => sum / values);
  };
  const mean = names.indexOf('mean');
  const sizes = [...(samples.places ? [places.length] : []), ...(samples.dates ? [dates.length] : [])];
  const [interval, ...ofSkill] = bootstrapIntervals(sizes, (...drawn) => {
    const ofPlace = samples.places ? drawn[0] : undefined;
    const ofDate = samples.dates ? drawn.at(-1) : undefined;
    const errors = weighted(({ at, on }) => (ofPlace?.[at] ?? 1) * (ofDate?.[on] ?? 1));
    return [errors[0]!, ...errors.map((one) => skillValue(one, errors[mean]!))];
  });
  const usesDates = samples.dates && (!samples.places || dates.length <= places.length);
  // A model that is its own baseline differs from it by rounding.
  const better = (than: Scored) =>
    byPlace.filter((own) => error('model', own) < (1 - ROUNDING) * error(than, own)).length;
  const ofEach = <T>(value: (name: Scored, n: number) => T) =>
    Object.fromEntries(names.map((name, n) => [name, value(name, n)])) as OfEach<T>;
  const { model: _, ...betterThan } = ofEach(better);
  return {
    places: places.length,
    dates: dates.length,
    errors: ofEach((name) => error(name)),
    skill: ofEach((name, n) => ({
      value: skillValue(error(name), error('mean')),
      ...(ofSkill[n] && { interval: ofSkill[n] }),
    })),
    ...(interval
      ? { interval }
      : {
          single: (usesDates ? dates : places).map((name, i) => ({
            name,
            error: error('model', (usesDates ? byDate : byPlace)[i]),
          })),
        }),
    medianRmse: medianOfSorted(Float64Array.from(byPlace, (own) => Math.sqrt(error('model', own))).sort()),
    better: betterThan,
  };
}
