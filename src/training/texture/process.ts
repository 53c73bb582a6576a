/** The `texture` job: computes the texture of each cell, and then clusters of the cells of each collection. */

import { mapConcurrent, TaskPool } from '../../async/index.js';
import { messageOf, TilewrightError } from '../../errors.js';
import type { GridName } from '../../grid/index.js';
import { type ConcludeContext, type JobContext, type Process, TILE_COUNTS_SCHEMA } from '../../jobs/index.js';
import {
  checkFilter,
  DATETIME_PATTERNS,
  defaultToRawSource,
  type FilterParams,
  filterSchema,
  parseDatetime,
  parseFilter,
  requireCollections,
  searchTiles,
} from '../../query/index.js';
import { imageKey } from '../../raster/index.js';
import {
  type ClusteringRecord,
  pinTiles,
  type Storage,
  type TextureRecord,
  type TileRecord,
} from '../../storage/index.js';
import { COUNT, documented, listOf, objectOf, TEXT } from '../../utils/json-schema.js';
import { plural, reasonKey } from '../../utils/text.js';
import { acquisitionFiles, bandValueKinds, groupTilesByCell, type TrainingCell } from '../cells.js';
import { fewTextures, noTextures, textureFailed } from '../errors.js';
import { RGB_BANDS } from '../models/spec.js';
import { membersOf } from './clusters.js';
import { isSound, storedTextures } from './texture-index.js';
import type { TextureHandlers } from './worker.js';

/** Limits of the paper: maximum cloud cover and minimum coverage of the cell, in percent. */
const CLEAR_PERCENT = { cloud: 5, coverage: 95 };

type Dated = Pick<TileRecord, 'id' | 'start' | 'coverage' | 'cloudCover'>;

/**
 * Returns the image nearest to a time (milliseconds since 1970), or the newest, among those with little cloud and full coverage; if there
 * are none, the image with the most cloud-free pixels. Images that were not assessed for cloud come last, by their coverage.
 */
export function clearestTile<T extends Dated>(tiles: T[], near = Infinity): T {
  const clearArea = ({ coverage, cloudCover }: T) => coverage * (100 - (cloudCover ?? 0));
  const assessed = tiles.filter((tile) => tile.cloudCover !== null && clearArea(tile) > 0);
  const unknown = tiles.filter(({ cloudCover }) => cloudCover === null);
  const candidates = [assessed, unknown, tiles].find((list) => list.length > 0)!;
  const clear = candidates.filter(
    ({ cloudCover, coverage }) =>
      (cloudCover ?? 0) <= CLEAR_PERCENT.cloud && coverage >= CLEAR_PERCENT.coverage,
  );
  const most = Math.max(...candidates.map(clearArea));
  const best = clear.length > 0 ? clear : candidates.filter((tile) => clearArea(tile) === most);
  const away = ({ start }: T) => (near === Infinity ? -start : Math.abs(start - near));
  return best.toSorted((a, b) => away(a) - away(b) || (a.id < b.id ? -1 : 1))[0];
}

interface TextureContext {
  storage: Storage;
  workers: TexturePool;
}

interface TextureInputs {
  filter?: FilterParams;
  /** Day or RFC 3339: the clear image nearest to it is used. Default: the newest. */
  near?: string;
  /** Default: the best number by the silhouettes. */
  clusters?: number;
  seed?: number;
}

const DEFAULT_SEED = 1;
/** Maximum number of clusters; more are of no use to people. */
const MAX_CLUSTERS = 1000;
const MAX_LISTED_FAILURES = 1000;
/** Number of cells whose textures are stored together. */
const BATCH_SIZE = 100;

const OUTPUTS = {
  textures: { title: 'Places with a new texture', schema: { type: 'integer' } },
  unchanged: { title: 'Places that keep their texture', schema: { type: 'integer' } },
  skipped: {
    title: 'Places without a texture, by reason',
    schema: { type: 'object', additionalProperties: { type: 'integer' } },
  },
  failed: { title: 'The first failures, with reasons', schema: { type: 'array', items: { type: 'object' } } },
  failures: { title: 'Places that failed', schema: { type: 'integer' } },
  collections: {
    title:
      'Clusters of all places of each collection with a known texture, and silhouettes of other numbers of clusters',
    schema: { type: 'array', items: { type: 'object' } },
  },
  seconds: { title: 'Duration in seconds', schema: { type: 'number' } },
};

/** Schema of the results of one node. Clusters are computed from the textures of all nodes. */
const { tiles: _, ...TALLY } = TILE_COUNTS_SCHEMA;
const PART = objectOf({
  textures: COUNT,
  unchanged: COUNT,
  ...TALLY,
  collections: listOf(objectOf({ collection: TEXT })),
});

export function textureProcess(context: TextureContext): Process {
  return {
    id: 'texture',
    title: 'Textures of places',
    description:
      'Computes the texture of each place (18 values of grey-level co-occurrence), and clusters the places of each collection by similarity.',
    inputs: {
      type: 'object',
      additionalProperties: false,
      properties: {
        filter: filterSchema,
        near: documented(
          {
            type: 'string',
            maxLength: 40,
            // Excludes time ranges.
            pattern: '^[^/]+$',
            description:
              'Among the images that cover 95 % of the cell with at most 5 % cloud, the one nearest to this day or time is used. Default: the newest',
          },
          { pattern: DATETIME_PATTERNS.moment },
        ),
        clusters: {
          type: 'integer',
          minimum: 1,
          maximum: MAX_CLUSTERS,
          description: 'Default: the best number by the silhouettes',
        },
        seed: { type: 'integer', minimum: 0, maximum: 2 ** 32 - 1 },
      },
    },
    outputs: OUTPUTS,
    resumable: true,
    retryInputs: async (inputs, results) => ((results as TextureResults).failures > 0 ? inputs : null),
    check: (inputs) => {
      checkFilter(inputs);
      timeOf(inputs as TextureInputs);
    },
    merge: (parts) => mergeTextures(parts as TextureResults[]),
    part: PART,
    run: (inputs, job) => computeTextures(context, inputs as TextureInputs, job),
    conclude: (results, job, inputs) =>
      cluster(context, results as TextureResults, inputs as TextureInputs, job),
  };
}

function timeOf({ near }: TextureInputs): number | undefined {
  if (near === undefined) return undefined;
  return parseDatetime(near, { dates: 'days' }).start;
}

async function computeTextures(
  { storage, workers }: TextureContext,
  inputs: TextureInputs,
  job: JobContext,
): Promise<TextureResults> {
  await requireCollections(storage, inputs.filter);
  const filter = defaultToRawSource(parseFilter(inputs.filter ?? {}));
  const picked = await storage.getTiles((await searchTiles(storage.index, filter)).ids);
  const cells = groupTilesByCell(picked.filter(job.isMine));
  const results: TextureResults = {
    textures: 0,
    unchanged: 0,
    skipped: {},
    failed: [],
    failures: 0,
    collections: collectionsOf(cells),
  };
  job.partial(() => results);
  job.message('computing textures');
  const near = timeOf(inputs);
  /** Ids of the images that were not assessed for cloud. */
  const unassessed = new Set(picked.filter(({ cloudCover }) => cloudCover === null).map(({ id }) => id));
  let fromUnassessed = 0;
  const skip = ({ collection, geocode }: TrainingCell, reason: string) => {
    countReason(results.skipped, reason, 1);
    job.log('warning', `skipped ${geocode} of ${collection}: ${reason}`);
  };
  const fail = (failure: TextureResults['failed'][number]) => {
    results.failures++;
    if (results.failed.length < MAX_LISTED_FAILURES) results.failed.push(failure);
    job.log('error', `${failure.tile}: ${failure.message} [${failure.code}]`);
  };
  /** Textures that are not stored yet. */
  let made: TextureRecord[] = [];
  const count = () => {
    const { textures, unchanged, skipped, failures } = results;
    const without = Object.values(skipped).reduce((a, b) => a + b, 0);
    job.progress({
      total: cells.length,
      done: textures + made.length,
      skipped: unchanged + without,
      failed: failures,
    });
  };
  for (let from = 0; from < cells.length; from += BATCH_SIZE) {
    const batch = cells.slice(from, from + BATCH_SIZE);
    const known = await currentTextures(storage, batch);
    try {
      await mapConcurrent([...batch.entries()], 2 + workers.threads, async ([i, cell]) => {
        job.signal.throwIfAborted();
        const outcome = await textureOfCell({ storage, workers }, cell, known[i], near, job.signal);
        if (outcome === 'unchanged') results.unchanged++;
        else if ('skipped' in outcome) {
          // The previous texture is kept.
          if (known[i]) results.unchanged++;
          else skip(cell, outcome.skipped);
        } else if ('code' in outcome) fail(outcome);
        else {
          made.push(outcome);
          if (unassessed.has(outcome.tile)) fromUnassessed++;
        }
        count();
      });
    } finally {
      // Even if the job was stopped, computed textures are stored, except for tiles that have been deleted in the meantime.
      results.textures += await storage.textures.put(made);
      made = [];
      count();
    }
  }
  if (fromUnassessed > 0)
    job.log(
      'warning',
      `${plural(fromUnassessed, 'texture')} of images that were not assessed for cloud, so they may show cloud`,
    );
  return results;
}

/** Returns the collections of the cells, without clusters. */
function collectionsOf(cells: TrainingCell[]): ClusteredCollection[] {
  const grids = new Map(cells.map(({ collection, grid }) => [collection, grid]));
  return [...grids].map(([collection, grid]) => ({ collection, grid, places: 0, clusters: [], curve: [] }));
}

type Outcome =
  | TextureRecord
  | 'unchanged'
  | { skipped: string }
  | { tile: string; code: string; message: string };

async function textureOfCell(
  { storage, workers }: TextureContext,
  { collection, grid, geocode, tiles }: TrainingCell,
  known: TextureRecord | undefined,
  near: number | undefined,
  signal: AbortSignal,
): Promise<Outcome> {
  const coloured = tiles.filter((tile) => acquisitionFiles(storage, RGB_BANDS, tile));
  if (coloured.length === 0) return { skipped: `no image with ${RGB_BANDS.join(', ')}` };
  const tile: TileRecord = clearestTile(coloured, near);
  const { id, version, start } = tile;
  if (known?.tile === id && known.version === version) return 'unchanged';
  // Grey levels assume reflectance; most 8-bit values of a camera would be brighter.
  if (bandValueKinds(RGB_BANDS, [tile]).includes('scaled counts'))
    return { skipped: '8-bit numbers without a scale are not reflectance; ingest them with --scale' };
  const date = acquisitionFiles(storage, RGB_BANDS, tile)!;
  try {
    const read = new Set([date.mask, ...Object.values(date.bands)].map(imageKey));
    const groups = tile.groups.filter(({ name }) => read.has(imageKey(storage.tileImage(tile, name))));
    const held = await pinTiles(storage, [{ tile, groups }]);
    try {
      const texture = await workers.run({ kind: 'texture', date }, { signal });
      return 'skipped' in texture
        ? texture
        : { collection, grid, geocode, tile: id, version, start, ...texture };
    } finally {
      held.release();
    }
  } catch (error) {
    if (signal.aborted || (error instanceof TilewrightError && error.status === 503)) throw error;
    const { code, message } =
      error instanceof TilewrightError ? error : textureFailed.because(error, messageOf(error));
    return { tile: id, code, message };
  }
}

/** Returns the textures of cells whose images still exist. */
async function currentTextures(
  storage: Storage,
  cells: TrainingCell[],
): Promise<(TextureRecord | undefined)[]> {
  const known = await storage.textures.getMany(cells);
  const tiles = await storage.getTiles(known.flatMap((one) => (one ? [one.tile] : [])));
  const versions = new Map(tiles.map(({ id, version }) => [id, version]));
  return known.map((one) =>
    one && isSound(one) && versions.get(one.tile) === one.version ? one : undefined,
  );
}

/** Reasons that differ only in their numbers are counted together, under the first of them. */
function countReason(counts: Record<string, number>, reason: string, count: number): void {
  const known = Object.keys(counts).find((one) => reasonKey(one) === reasonKey(reason)) ?? reason;
  counts[known] = (counts[known] ?? 0) + count;
}

function mergeTextures(parts: TextureResults[]): TextureResults {
  const sum = (of: (part: TextureResults) => number) => parts.reduce((total, part) => total + of(part), 0);
  const skipped: TextureResults['skipped'] = {};
  for (const part of parts)
    for (const [reason, count] of Object.entries(part.skipped)) countReason(skipped, reason, count);
  const collections = new Map(parts.flatMap((part) => part.collections.map((one) => [one.collection, one])));
  return {
    textures: sum(({ textures }) => textures),
    unchanged: sum(({ unchanged }) => unchanged),
    skipped,
    failed: parts.flatMap(({ failed }) => failed).slice(0, MAX_LISTED_FAILURES),
    failures: sum(({ failures }) => failures),
    collections: [...collections.keys()].sort().map((id) => collections.get(id)!),
  };
}

/** Throws TW_TRAIN_NO_TEXTURE, and TW_TRAIN_FEW_TEXTURES if any collection has too few; all collections then keep their clusters. */
async function cluster(
  { storage, workers }: TextureContext,
  results: TextureResults,
  { clusters, seed = DEFAULT_SEED }: TextureInputs,
  job: ConcludeContext,
): Promise<TextureResults> {
  job.message('finding clusters');
  const known: TextureRecord[][] = [];
  for (const { collection } of results.collections) {
    const textures = await storedTextures(storage, collection);
    if (textures.length === 0) continue;
    // Checked before any collection is changed.
    if (clusters !== undefined && textures.length < clusters)
      throw fewTextures(collection, textures.length, clusters);
    known.push(textures);
  }
  const collections: ClusteredCollection[] = [];
  for (const textures of known) {
    const [{ collection, grid }] = textures;
    const vectors = textures.map(({ values }) => Float64Array.from(values));
    const { labels, medoids, ...found } = await workers.run(
      { kind: 'cluster', textures: vectors, clusters, seed },
      // The thread does not check for an abort and has nothing to close, so it is ended immediately.
      { signal: job.signal, graceMs: 0 },
    );
    const cellCount = textures.length;
    await storage.textures.putClustering({ collection, ...found, places: cellCount, createdAt: Date.now() });
    const members = membersOf(labels, medoids.length).map(
      (own, c): TextureCluster => ({
        places: own.map((i) => textures[i].geocode),
        middle: textures[medoids[c]].geocode,
      }),
    );
    collections.push({ collection, grid, places: cellCount, clusters: members, curve: found.curve });
  }
  if (collections.length === 0)
    throw noTextures(
      results.textures + results.unchanged > 0
        ? ['the textures have been deleted in the meantime']
        : reasonsOf(results),
    );
  job.message(
    collections
      .map(
        ({ collection, places, clusters }) =>
          `${collection}: ${plural(places, 'place')} in ${plural(clusters.length, 'cluster')}`,
      )
      .join(', '),
  );
  return { ...results, collections };
}

function reasonsOf({ skipped, failed }: TextureResults): string[] {
  const reasons = Object.entries(skipped).map(([reason, count]) => `${plural(count, 'place')}: ${reason}`);
  return [...reasons, ...failed.map(({ message }) => message)].slice(0, 3);
}

/** Results of the `texture` job. */
export interface TextureResults {
  /** Number of cells whose texture was computed. */
  textures: number;
  /** Number of cells that keep their texture: their image is the same, or has too few clear pixels. */
  unchanged: number;
  /** Numbers of cells without a texture, by reason. */
  skipped: Record<string, number>;
  /** The first failures. */
  failed: { tile: string; code: string; message: string }[];
  failures: number;
  /** Clusters of all cells of each collection with a known texture. */
  collections: ClusteredCollection[];
}

export interface ClusteredCollection extends Pick<ClusteringRecord, 'collection' | 'places' | 'curve'> {
  grid: GridName;
  /** The largest first. */
  clusters: TextureCluster[];
}

interface TextureCluster {
  places: string[];
  /** The cell nearest to the centre of the cluster. */
  middle: string;
}

/** Worker threads that compute textures. They are started once and kept. */
export class TexturePool extends TaskPool<TextureHandlers> {
  constructor(threads: number) {
    super(new URL('./worker.bundle.js', import.meta.url), threads);
  }
}
