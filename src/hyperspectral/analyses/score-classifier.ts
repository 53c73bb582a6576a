/** Scores a stored classifier on other labels, land or dates, as a job that trains nothing and makes no tiles. */
import { mapConcurrent } from '../../async/index.js';
import { selectedTiles } from '../../derive/index.js';
import { ENGINE_NAMES } from '../../engines/index.js';
import {
  addSkipped,
  emptyCounts,
  type JobContext,
  mergeCounts,
  type Process,
  TILE_COUNTS_SCHEMA,
  type TileCounts,
} from '../../jobs/index.js';
import {
  checkFilter,
  type FilterParams,
  filterSchema,
  parseFilter,
  requireCollections,
} from '../../query/index.js';
import {
  type ModelVersionRecord,
  modelNotFound,
  modelVersionNotFound,
  type TileRecord,
  versionNamed,
  withPinnedTiles,
} from '../../storage/index.js';
import { MIN_UNITS } from '../../utils/bootstrap.js';
import { COUNT, listOf, NUMBER, objectOf, TEXT } from '../../utils/json-schema.js';
import { type AnalysisContext, readTile, requireTiles } from '../analysis.js';
import { defaultName } from '../classification/map-fit.js';
import { ACCURACY_SCORES, type AccuracyScores, accuracyScores } from '../classification/selection.js';
import { CLASSIFIER, type ClassifierCard } from '../classification/stored-classifier.js';
import { withMappers } from '../cnn/session.js';
import { fewLabels } from '../errors.js';
import { checkLabels, LABELS, LABELS_OF_MAP, type Labels, openLabels, withLabels } from '../labels.js';
import { neighbourhoodRadius } from '../map-analysis.js';
import type { Tally, TallyTask } from '../output-tile.js';
import { findNeighbourSpectra, neighbourFiles, type TileSpectrum } from '../tile-spectrum.js';
import { applicableSpectrum, applicableTiles, storedMethod } from './apply-classifier.js';

interface ScoreInputs {
  /** Id of a classifier. */
  model: string;
  version?: string;
  filter?: FilterParams;
  labels: Labels;
  /** How the labels were drawn, if they are a probability sample of pixels; strata are the classes of the map. */
  sample?: 'random' | 'stratified';
  engine?: string;
}

/** Counts of a run. Plain JSON. */
interface ScorePart extends TileCounts {
  /** Pixels by label code * 256 + number of the predicted class. */
  squares: { square: string; table: number[][] }[];
  touching: number;
  /** Square metres of each class in the map. */
  areas: number[];
  /** True if several tiles are of one cell. */
  overlaps: boolean;
  /** Tiles whose labels are those of a map. */
  maps: number;
}

const PART = objectOf({
  ...TILE_COUNTS_SCHEMA,
  squares: listOf(objectOf({ square: TEXT, table: listOf(listOf(COUNT)) })),
  touching: COUNT,
  areas: listOf(COUNT),
  overlaps: { type: 'boolean' },
  maps: COUNT,
});

/** Areas of classes from a map and a probability sample of labels (Olofsson et al. 2014), with standard errors. Plain JSON. */
interface AreaEstimates {
  /** Overall accuracy of the area of the map. */
  oa: number;
  oaError: number;
  classes: {
    name: string;
    /** Square kilometres in the map, and estimated. */
    mapped: number;
    area: number;
    areaError: number;
    /** Share of the area of the class in the map that belongs to it (precision), and of its true area that the map shows (recall). */
    users: number;
    usersError: number;
    producers: number;
    producersError: number;
  }[];
}

const ESTIMATED = ['mapped', 'area', 'areaError', 'users', 'usersError', 'producers', 'producersError'];

const AREA_ESTIMATES = objectOf({
  oa: NUMBER,
  oaError: NUMBER,
  classes: listOf(
    objectOf({ name: TEXT, ...Object.fromEntries(ESTIMATED.map((member) => [member, NUMBER])) }),
  ),
});

export interface ScoreClassifierResults extends TileCounts, AccuracyScores {
  model: string;
  version: string;
  /** Names of the classes, in their order. */
  names: string[];
  warnings: string[];
  /** Labelled pixels and squares on ground that trained the classifier, and the scores of the other ground. */
  trained: { pixels: number; squares: number };
  elsewhere?: AccuracyScores;
  area?: AreaEstimates;
  /** Why areas are not estimated. */
  noArea?: string;
}

const NUMBERS = { type: 'array', items: { type: 'number' } };
const OUTPUTS = {
  pixels: { title: 'Scored pixels', schema: COUNT },
  squares: { title: 'Squares of ground with scored pixels', schema: COUNT },
  oa: { title: 'Overall accuracy, 0 to 1', schema: { type: 'number' } },
  oaInterval: { title: 'Its 95 % interval by bootstrap over the squares', schema: NUMBERS },
  kappa: { title: "Cohen's kappa", schema: { type: 'number' } },
  kappaInterval: { title: 'Its 95 % interval', schema: NUMBERS },
  names: { title: 'Names of the classes', schema: listOf(TEXT) },
  classes: { title: 'Scores of each class', schema: listOf({ type: 'object' }) },
  confusion: { title: 'Pixels by label and class of the map', schema: listOf(NUMBERS) },
  elsewhere: { title: 'The same scores on ground that did not train', schema: ACCURACY_SCORES },
  area: { title: 'Areas of the classes, for a probability sample of labels', schema: AREA_ESTIMATES },
  noArea: { title: 'Why areas are not estimated', schema: TEXT },
  warnings: { title: 'Limits of the scores', schema: listOf(TEXT) },
};

/** The classifier of a request. Throws TW_STORAGE_NO_MODEL and TW_STORAGE_NO_MODEL_VERSION. */
async function classifierOf(
  { storage }: AnalysisContext,
  { model, version = 'latest' }: ScoreInputs,
): Promise<ModelVersionRecord & { card: ClassifierCard }> {
  const record = await storage.models.get(model);
  if (!record) throw modelNotFound(model);
  const classifier = versionNamed(record, version);
  if (!classifier) throw modelVersionNotFound(model, version);
  return classifier as ModelVersionRecord & { card: ClassifierCard };
}

export function scoreClassifierProcess(context: AnalysisContext): Process {
  return {
    id: 'score-classifier',
    title: 'Score a classifier',
    description:
      'Applies a stored classifier to labelled pixels of other land or dates, without training and without new tiles: confusion matrix, accuracy, kappa and F1 with intervals, and areas of the classes for a probability sample of labels.',
    inputs: {
      type: 'object',
      required: ['model', 'labels'],
      additionalProperties: false,
      properties: {
        model: {
          type: 'string',
          maxLength: 200,
          pattern: `^${CLASSIFIER}_.+_[gq].+$`,
          description: 'Id of a classifier, such as classifier_enmap_gu33d',
        },
        version: {
          type: 'string',
          maxLength: 40,
          default: 'latest',
          description: 'latest, best, or the name of a version',
        },
        filter: filterSchema,
        labels: LABELS,
        sample: {
          enum: ['random', 'stratified'],
          description:
            'How the labelled pixels were drawn, if they are a probability sample of all pixels that the filter selects, or of each class of the map. Areas are estimated only for such a sample',
        },
        engine: { enum: ENGINE_NAMES },
      },
    },
    outputs: OUTPUTS,
    resumable: true,
    // A version that is stored in the meantime must not be scored by some runs.
    prepare: async (inputs) => {
      const { version } = await classifierOf(context, inputs as ScoreInputs);
      return { ...(inputs as ScoreInputs), version };
    },
    check: async (inputs) => {
      checkFilter(inputs);
      await checkLabels((inputs as ScoreInputs).labels);
    },
    merge: (parts) => mergeParts(parts as ScorePart[]),
    part: PART,
    run: (inputs, job) => tallyTiles(context, inputs as ScoreInputs, job),
    conclude: (part, job, inputs) => concludeScore(context, part as ScorePart, inputs as ScoreInputs, job),
  };
}

async function tallyTiles(
  context: AnalysisContext,
  inputs: ScoreInputs,
  job: JobContext,
): Promise<ScorePart> {
  const { storage, finder, workers } = context;
  const model = await classifierOf(context, inputs);
  const { card } = model;
  await requireCollections(storage, inputs.filter);
  if (inputs.labels.collection !== undefined)
    await requireCollections(storage, { collections: inputs.labels.collection });
  const filter = applicableTiles(model, parseFilter({ collections: [model.collection], ...inputs.filter }));
  const counts = emptyCounts();
  const cells = new Set<string>();
  const part = { touching: 0, areas: card.classes.map(() => 0), overlaps: false, maps: 0 };
  const squares = new Map<string, Map<number, number>>();
  const add = (tally: Tally) => {
    part.touching += tally.touching;
    for (const [c, area] of tally.areas.entries()) part.areas[c] += area;
    for (const [square, table] of tally.squares) addTable(squares, square, table);
  };
  const method = await storedMethod(context, model);
  const labels = await openLabels(inputs.labels);
  const spectrumOf = (tile: TileRecord) => {
    const spectrum = applicableSpectrum(tile, card);
    return typeof spectrum === 'string' ? undefined : spectrum;
  };
  const scoreAll = async (compute: (task: Omit<TallyTask, 'method'>) => Promise<Tally | null>) => {
    const scoreTile = (of: { tile: TileRecord; spectrum: TileSpectrum }) =>
      readTile({ context, job, counts }, of, async (tile, file) => {
        const { grid, geocode } = tile;
        const around = await findNeighbourSpectra(finder, tile, neighbourhoodRadius(method), spectrumOf);
        const read = around.map(({ tile }) => ({ tile, groups: tile.groups }));
        const tally = await withPinnedTiles(storage, read, () =>
          withLabels(context, labels, tile, (labels) => {
            if (labels.isMap) part.maps++;
            return compute({
              ...{ kind: 'tally', file, cell: { grid, geocode }, labels, checksScale: true },
              squares: { size: card.labelled.size, grid: card.grid },
              mapsAll: inputs.sample !== undefined,
              ...(around.length > 0 && { around: neighbourFiles(storage, around) }),
            });
          }),
        );
        if (!tally) return;
        const cell = `${grid} ${geocode}`;
        part.overlaps ||= cells.has(cell);
        cells.add(cell);
        add(tally);
        job.progress({ done: counts.tiles + 1, failed: counts.failures });
      });
    await mapConcurrent(selectedTiles(storage, filter, job.isMine), workers.threads + 1, async (tile) => {
      const spectrum = applicableSpectrum(tile, card);
      if (typeof spectrum === 'string') addSkipped(counts, spectrum);
      else await scoreTile({ tile, spectrum });
    });
  };
  if (method.kind !== 'net')
    await scoreAll((task) => workers.run({ ...task, method }, { signal: job.signal }));
  else
    await withMappers(context, inputs.engine, ({ tally }) =>
      scoreAll((task) => tally({ ...task, method }, job.signal)),
    );
  return {
    ...counts,
    ...part,
    squares: [...squares].map(([square, table]) => ({ square, table: [...table].map((one) => [...one]) })),
  };
}

function addTable(
  squares: Map<string, Map<number, number>>,
  square: string,
  table: Iterable<readonly number[]>,
): void {
  const sums = squares.get(square) ?? new Map<number, number>();
  for (const [at, count] of table) sums.set(at, (sums.get(at) ?? 0) + count);
  squares.set(square, sums);
}

function mergeParts(parts: ScorePart[]): ScorePart {
  const squares = new Map<string, Map<number, number>>();
  for (const part of parts) for (const { square, table } of part.squares) addTable(squares, square, table);
  const sum = (values: number[]) => values.reduce((total, value) => total + value, 0);
  return {
    ...mergeCounts(parts),
    touching: sum(parts.map(({ touching }) => touching)),
    areas: parts[0].areas.map((_, c) => sum(parts.map(({ areas }) => areas[c]))),
    overlaps: parts.some(({ overlaps }) => overlaps),
    maps: sum(parts.map(({ maps }) => maps)),
    squares: [...squares]
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([square, table]) => ({ square, table: [...table].map((one) => [...one]) })),
  };
}

/** The classes of the matrix: those of the classifier, then those that only the labels have. */
function classesOf({ classes }: ClassifierCard, { names = {} }: Labels, codes: readonly number[]) {
  const all = classes.map(({ code, name }) => ({ code, name }));
  const numbers = new Map<number, number>();
  for (const code of codes) {
    const name = names[code];
    // Names say more than codes: GeoJSON numbers the names that it has.
    const byName = name === undefined ? -1 : all.findIndex((one) => one.name === name);
    const byCode = classes.findIndex((one) => one.code === code);
    const isSame = byCode >= 0 && (name === undefined || all[byCode].name === defaultName(code));
    const number =
      byName >= 0 ? byName : isSame ? byCode : all.push({ code, name: name ?? defaultName(code) }) - 1;
    numbers.set(code, number);
  }
  return { all, numbers, foreign: all.slice(classes.length).map(({ name }) => name) };
}

async function concludeScore(
  context: AnalysisContext,
  part: ScorePart,
  inputs: ScoreInputs,
  job: { message(text: string): void },
): Promise<ScoreClassifierResults> {
  requireTiles(part);
  const { id, version, card } = await classifierOf(context, inputs);
  const codes = [
    ...new Set(part.squares.flatMap(({ table }) => table.map(([at]) => Math.floor(at / 256)))),
  ].sort((a, b) => a - b);
  if (codes.length === 0) {
    const skipped = Object.entries(part.skipped).map(([reason, tiles]) => `${tiles} tiles: ${reason}`);
    throw fewLabels(
      `no labelled pixel lies in the ${part.tiles} tiles that the classifier reads${skipped.length > 0 ? ` (${skipped.join('; ')})` : ''}`,
      'choose the tiles of the labels, with --collection or --bbox',
    );
  }
  const { all, numbers, foreign } = classesOf(card, inputs.labels, codes);
  const tables = part.squares.map(({ square, table }) => ({
    square,
    table: new Map(
      table.map(([at, count]) => [numbers.get(Math.floor(at / 256))! * all.length + (at % 256), count]),
    ),
  }));
  const trainedSquares = new Set(card.labelled.at);
  const scoresOf = (of: typeof tables) =>
    accuracyScores(
      of.map(({ table }) => table),
      all.map(({ code }) => code),
    );
  const scores = scoresOf(tables);
  const others = tables.filter(({ square }) => !trainedSquares.has(square));
  const elsewhere = scoresOf(others);
  const trained = {
    pixels: scores.pixels - elsewhere.pixels,
    squares: scores.squares - elsewhere.squares,
  };
  const names = all.map(({ name }) => name);
  const few = scores.classes.flatMap(({ pixels, squares }, c) =>
    pixels > 0 && squares < MIN_UNITS ? [names[c]] : [],
  );
  const area = areaOf(part, scores, names, inputs.sample);
  job.message(`${scores.pixels} labelled pixels of ${part.tiles} tiles`);
  const { squares: _, touching: __, areas: ___, overlaps: ____, maps, ...counts } = part;
  return {
    ...{ model: id, version, ...counts, ...scores, names, trained },
    ...(trained.pixels > 0 && elsewhere.pixels > 0 && { elsewhere }),
    ...(typeof area === 'string' ? { noArea: area } : { area }),
    warnings: [
      ...(trained.pixels > 0
        ? [
            `${trained.pixels} of ${scores.pixels} labelled pixels lie on ground that trained the classifier, which overestimates its accuracy`,
          ]
        : []),
      ...(maps > 0 ? [`${maps} of ${part.tiles} tiles: ${LABELS_OF_MAP}`] : []),
      ...(foreign.length > 0
        ? [`the classifier does not know ${foreign.join(', ')}: their pixels count as errors`]
        : []),
      ...(few.length > 0
        ? [`${few.join(', ')}: poorly supported, by labels in fewer than ${MIN_UNITS} squares of ground`]
        : []),
    ],
  };
}

/** Estimates of areas, or the reason why they are missing. */
function areaOf(
  { areas, touching, overlaps, failures }: ScorePart,
  { confusion, pixels }: AccuracyScores,
  names: readonly string[],
  sample: ScoreInputs['sample'],
): AreaEstimates | string {
  if (sample === undefined)
    return 'the labels are not declared as a probability sample; --sample random or stratified declares it';
  if (failures > 0) return `${failures} tiles failed, so the area of the map is not known`;
  if (overlaps) return 'several dates of one cell match; choose one date with --datetime';
  if (2 * touching > pixels)
    return 'most labelled pixels touch others, so they were not drawn one by one; label single pixels';
  const mapped = names.map((_, c) => (areas[c] ?? 0) / 1e6);
  return areaEstimates(confusion, mapped, names);
}

/**
 * Returns the estimates, or the reason why they are missing. The classes of the map are the strata; a simple random sample is stratified
 * afterwards. `confusion`: rows are labels, columns are classes of the map. `mapped`: square kilometres of each class in the map.
 */
export function areaEstimates(
  confusion: readonly (readonly number[])[],
  mapped: readonly number[],
  names: readonly string[],
): AreaEstimates | string {
  const total = mapped.reduce((sum, area) => sum + area, 0);
  const counts = mapped.map((_, stratum) => confusion.reduce((sum, row) => sum + row[stratum], 0));
  const strata = [...mapped.keys()].filter((stratum) => mapped[stratum] > 0);
  const scarce = strata.filter((stratum) => counts[stratum] < 2);
  if (scarce.length > 0)
    return `fewer than 2 labels lie in the area that the map gives to ${scarce.map((one) => names[one]).join(', ')}`;
  const weight = (stratum: number) => mapped[stratum] / total;
  /** Share of a stratum that belongs to a class, and the variance of its estimate (equations 4 and 10). */
  const shareOf = (name: number, stratum: number) => confusion[name][stratum] / counts[stratum];
  const varianceOf = (name: number, stratum: number) => {
    const share = shareOf(name, stratum);
    return (share * (1 - share)) / (counts[stratum] - 1);
  };
  const sum = (value: (stratum: number) => number) => strata.reduce((all, one) => all + value(one), 0);
  const classes = names.map((name, c) => {
    const isMapped = mapped[c] > 0;
    const users = isMapped ? shareOf(c, c) : 0;
    const part = sum((stratum) => weight(stratum) * shareOf(c, stratum));
    const producers = part === 0 ? 0 : ((isMapped ? weight(c) : 0) * users) / part;
    // Equation 7, with shares of the area in place of pixels.
    const ofClass = isMapped ? weight(c) ** 2 * (1 - producers) ** 2 * varianceOf(c, c) : 0;
    const others = sum((stratum) => (stratum === c ? 0 : weight(stratum) ** 2 * varianceOf(c, stratum)));
    return {
      name,
      mapped: mapped[c],
      area: part * total,
      areaError: total * Math.sqrt(sum((stratum) => weight(stratum) ** 2 * varianceOf(c, stratum))),
      users,
      usersError: isMapped ? Math.sqrt(varianceOf(c, c)) : 0,
      producers,
      producersError: part === 0 ? 0 : Math.sqrt(ofClass + producers ** 2 * others) / part,
    };
  });
  return {
    oa: sum((stratum) => weight(stratum) * shareOf(stratum, stratum)),
    oaError: Math.sqrt(sum((stratum) => weight(stratum) ** 2 * varianceOf(stratum, stratum))),
    classes,
  };
}
