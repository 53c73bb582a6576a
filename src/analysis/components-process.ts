/** Principal components and minimum noise fractions of a collection, as jobs that make maps of them. */
import { createHash } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { ConcludeContext, JobContext, Process } from '../jobs/index.js';
import { COUNT, listOf, messageCheck, NUMBER, objectOf, TEXT } from '../json-schema.js';
import {
  derive,
  npyHead,
  type Planned,
  pickedTiles,
  REPEATABLE,
  WRANGLE_PART,
  type WrangleResults,
} from '../wrangle/index.js';
import {
  type Analysed,
  type AnalysisContext,
  agreeOnBands,
  eachTile,
  fileOf,
  type TileCounts,
} from './analysis-run.js';
import type { BandStatistics } from './band-statistics.js';
import { CODED_SUMS, CodedSums, type SentCodedSums } from './coded-sums.js';
import { ANALYSIS_PROPERTIES, type AnalysisInputs, checkAnalysis, collectionOf } from './inputs.js';
import type { LinearTransform } from './linear-transform.js';
import type { AnalysedBand } from './spectral-tile.js';
import type { TransformTask } from './tasks.js';

export interface ComponentsInputs extends AnalysisInputs {
  /** Components that maps are made of. */
  components?: number;
}

/** What was found, the same in all runs of a job. */
interface Fit {
  bands: AnalysedBand[];
  /** Pixels whose statistics were taken. */
  pixels: number;
  mean: number[];
  /** All of them, the largest first. */
  eigenvalues: number[];
  /** One row for each component that maps are made of. */
  weights: number[][];
}

interface ComponentsPart extends WrangleResults {
  fit: Fit;
}

export interface ComponentsResults extends WrangleResults, Omit<Fit, 'weights' | 'mean'> {
  collection: string;
  /** Source of the tiles that were made. */
  source: Kind['name'];
  /** Share of the variance that each component holds, 0 to 1; of principal components. */
  shares?: number[];
  files: string[];
}

interface Kind {
  /** Also the source of the tiles. */
  name: 'pca' | 'mnf';
  title: string;
  description: string;
  /** Bands of the maps: this and a number from 1. */
  band: string;
}

export const PCA: Kind = {
  name: 'pca',
  title: 'Principal components',
  description:
    'Maps of the principal components of the spectra of a collection, from the covariance over all its clear pixels.',
  band: 'pc',
};

export const MNF: Kind = {
  name: 'mnf',
  title: 'Minimum noise fractions',
  description:
    'Maps of the minimum noise fractions of the spectra of a collection: components in the order of their signal-to-noise ratios. The noise is estimated from the differences between neighbouring pixels.',
  band: 'mnf',
};

const DEFAULT_COMPONENTS = 10;
const NOTHING = 'no pixel of them is clear and holds data in every band';

const FIT = objectOf({
  bands: listOf(objectOf({ name: TEXT, wavelength: NUMBER })),
  pixels: COUNT,
  mean: listOf(NUMBER),
  eigenvalues: listOf(NUMBER),
  weights: listOf(listOf(NUMBER)),
});
const PART = { allOf: [WRANGLE_PART, objectOf({ fit: FIT })] };
const checkSums = messageCheck(objectOf({ pixels: listOf(CODED_SUMS), differences: listOf(CODED_SUMS) }));

/** What a run tells the others. */
interface Sums {
  pixels: SentCodedSums[];
  /** Between neighbours; none for principal components. */
  differences: SentCodedSums[];
}

export function componentsProcess(context: AnalysisContext, kind: Kind): Process {
  return {
    id: `analyse-${kind.name}`,
    title: kind.title,
    description: kind.description,
    inputs: {
      type: 'object',
      required: ['filter'],
      additionalProperties: false,
      properties: {
        ...ANALYSIS_PROPERTIES,
        components: { type: 'integer', minimum: 1, maximum: 100, default: DEFAULT_COMPONENTS },
      },
    },
    ...REPEATABLE,
    goesTogether: () => true,
    check: checkAnalysis,
    merge: (parts) => mergeParts(parts as ComponentsPart[]),
    part: PART,
    run: (inputs, job) => run(context, kind, inputs as ComponentsInputs, job),
    conclude: (results, job, inputs) =>
      conclude(context, kind, results as ComponentsPart, inputs as ComponentsInputs, job),
  };
}

function mergeParts(parts: ComponentsPart[]): ComponentsPart {
  return { ...REPEATABLE.merge(parts), fit: parts[0]!.fit };
}

async function run(
  context: AnalysisContext,
  kind: Kind,
  inputs: ComponentsInputs,
  job: JobContext,
): Promise<ComponentsPart> {
  const started = performance.now();
  const analysed = await agreeOnBands(context, inputs, job);
  const { pixels, differences } = await sumTiles(context, kind, analysed, job);
  const statistics = pixels.statistics();
  const count = Math.min(inputs.components ?? DEFAULT_COMPONENTS, analysed.bands.length);
  const task = { kind: 'components', covariance: statistics.covariance, count } as const;
  job.message(`components of ${statistics.pixels} pixels`);
  const { eigenvalues, weights } = await context.workers.components(
    // The difference of two pixels has the noise of both.
    differences ? { ...task, noise: differences.statistics().covariance.map((value) => value / 2) } : task,
    job.signal,
  );
  const transform: LinearTransform = { rows: count, weights, centre: statistics.mean };
  job.message(`making maps of ${count} components`);
  const planned = planTiles(context, kind, analysed, transform, job);
  const results = await derive(context, planned, secondHalf(job, analysed.tiles), NOTHING);
  for (const [reason, tiles] of Object.entries(analysed.skipped)) results.skipped[reason] = tiles;
  results.seconds = (performance.now() - started) / 1000;
  return { ...results, fit: fitOf(analysed, statistics, eigenvalues, weights) };
}

/** The sums of all runs of the job. */
async function sumTiles(
  context: AnalysisContext,
  kind: Kind,
  analysed: Analysed,
  job: JobContext,
): Promise<{ pixels: CodedSums; differences: CodedSums | undefined }> {
  const { bands, tiles } = analysed;
  const own = { pixels: new CodedSums(bands.length), differences: new CodedSums(bands.length) };
  const counts: TileCounts = { tiles: 0, skipped: {}, failed: [], failures: 0 };
  job.message(`reading ${bands.length} bands of ${tiles} tiles`);
  await eachTile(context, analysed, job, counts, async (_, file) => {
    own.pixels.add(file, await context.workers.sums({ kind: 'sums', file, of: 'pixels' }, job.signal));
    if (kind === MNF) {
      const sums = await context.workers.sums({ kind: 'sums', file, of: 'differences' }, job.signal);
      // A difference has no offset.
      own.differences.add({ scales: file.scales, offsets: file.offsets.map(() => 0) }, sums);
    }
    job.progress({ share: (counts.tiles + 1) / tiles / 2 });
  });
  const all = await job.meet<Sums>({ pixels: own.pixels.sent(), differences: own.differences.sent() });
  const total = { pixels: new CodedSums(bands.length), differences: new CodedSums(bands.length) };
  for (const sums of all) {
    const fault = checkSums(sums);
    if (fault !== undefined) throw new Error(`a node has sent sums that are none: ${fault}`);
    total.pixels.addSent(sums.pixels);
    total.differences.addSent(sums.differences);
  }
  return { pixels: total.pixels, differences: kind === MNF ? total.differences : undefined };
}

/** The progress of work that begins when half of the job is done. */
function secondHalf(job: JobContext, tiles: number): JobContext {
  return {
    ...job,
    progress: (now) => {
      const ended = (now.done ?? 0) + (now.failed ?? 0) + (now.skipped ?? 0);
      job.progress({ ...now, share: 0.5 + Math.min(0.5, ended / Math.max(tiles, 1) / 2) });
    },
  };
}

async function* planTiles(
  { storage }: AnalysisContext,
  { name, band }: Kind,
  { filter, spectrumOf }: Analysed,
  transform: LinearTransform,
  job: JobContext,
): AsyncGenerator<Planned<TransformTask>> {
  const recipe = digestOf(transform);
  const bands = Array.from({ length: transform.rows }, (_, row) => `${band}${row + 1}`);
  for await (const tile of pickedTiles(storage, filter, job.isMine)) {
    const spectrum = spectrumOf(tile);
    if (!spectrum) continue;
    const { collection, scene, grid, geocode, start, end, platform } = tile;
    yield {
      facts: { collection, scene, grid, geocode, start, end, platform, source: name },
      inputs: [tile],
      parameters: {},
      recipe,
      task: (made) => ({
        ...{ kind: 'transform', transform, bands, group: spectrum.group.name },
        tile: { ...made, metadata: { ...made.metadata, ANALYSIS: `${name} ${recipe}` } },
        file: fileOf(storage, tile, spectrum),
      }),
    };
  }
}

/** The first 16 hex digits of SHA-256. */
function digestOf({ weights, centre }: LinearTransform): string {
  return createHash('sha256')
    .update(new Uint8Array(weights.buffer))
    .update(new Uint8Array(centre.buffer))
    .digest('hex')
    .slice(0, 16);
}

function fitOf(
  { bands }: Analysed,
  { pixels, mean }: BandStatistics,
  eigenvalues: Float64Array,
  weights: Float64Array,
): Fit {
  const size = bands.length;
  const rows = Array.from({ length: weights.length / size }, (_, row) => row);
  return {
    ...{ bands, pixels, mean: Array.from(mean), eigenvalues: Array.from(eigenvalues) },
    weights: rows.map((row) => Array.from(weights.subarray(row * size, (row + 1) * size))),
  };
}

async function conclude(
  { storage }: AnalysisContext,
  kind: Kind,
  part: ComponentsPart,
  inputs: ComponentsInputs,
  job: ConcludeContext,
): Promise<ComponentsResults> {
  REPEATABLE.conclude(part, job);
  const { fit, ...results } = part;
  const { weights, mean, ...known } = fit;
  const folder = await storage.resultsFolder(job.id);
  const name = 'components.npy';
  await writeFile(join(folder, name), [
    npyHead('float64', [weights.length, mean.length]),
    new Uint8Array(Float64Array.from(weights.flat()).buffer),
  ]);
  await job.file(name);
  const total = fit.eigenvalues.reduce((sum, value) => sum + value, 0);
  return {
    ...{ collection: collectionOf(inputs), source: kind.name },
    ...results,
    ...known,
    ...(kind === PCA && { shares: fit.eigenvalues.map((value) => value / total) }),
    files: [name],
  };
}
