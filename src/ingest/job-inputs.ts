/** Inputs, results and context of the ingest process. */
import { basename, dirname } from 'node:path';
import type { IngestMetrics } from '../metrics/index.js';
import { NO_HOSTS, type RemoteAccess } from '../remote/index.js';
import type { Storage } from '../storage/index.js';
import { isRemoteAddress, plural } from '../utils/text.js';
import type { IngestPool } from './cut/pool.js';
import { collectionNotNamed, noDatetime } from './errors.js';
import { proposeNamePattern } from './formats/name-pattern.js';
import type { SkippedFile } from './inputs.js';
import type { StacSource } from './remote-scenes.js';
import { type IngestOptions, type Scene, stemOf } from './scene.js';
import type { ScenePartCluster } from './scene-parts.js';
import type { SceneResult } from './scene-tiles.js';

export interface IngestInputs extends IngestOptions {
  /** Files or folders on the disk of the node, and addresses of single files: `https://...` and `s3://...`. */
  paths?: string[];
  /** Scenes of a remote catalog; `bbox` selects both scenes and cells. */
  stac?: StacSource;
  /**
   * True if the job may read only from the allowed folders, as of the time when it runs. Set by the server, not by its users.
   */
  fenced?: boolean;
  /** The sender's name for the only path, an uploaded file. Set by the server. */
  sentAs?: string;
}

export interface IngestResults {
  collection: string | null;
  scenes: SceneResult[];
  tiles: number;
  failed: { path: string; code: string; message: string }[];
  /** Options with which the same inputs can be ingested, if all of them failed because they lack these. */
  suggested?: Pick<IngestOptions, 'collection' | 'namePattern'> | undefined;
  /** Subfolders without an input, and those too deep to be searched. */
  passedOver: string[];
  /** With a name pattern or a region only: files whose names do not fit it, and scenes outside of it. */
  skipped?: SkippedFile[];
}

export interface IngestProcessContext {
  storage: Storage;
  workers: IngestPool;
  /** Memory budget of ingest in bytes, on top of the program's own memory. */
  memory: number;
  cloudModel?: string | undefined;
  metrics?: IngestMetrics;
  /** Real paths of the folders that users other than the owner of the node may have read; none by default. */
  allowedFolders?: string[];
  /** Hosts that scenes may be fetched from, none by default, and credentials for them. */
  remote?: RemoteAccess;
  /** The cluster of the node, whose nodes read the remote scenes together. */
  cluster?: ScenePartCluster | undefined;
}

/** Access to no host. */
export const NO_ACCESS: RemoteAccess = { policy: NO_HOSTS };

/** Options that affect the tiles, without the inputs. */
export function describeOptions({
  paths: _,
  stac: __,
  fenced: ___,
  sentAs: ____,
  ...options
}: IngestInputs): IngestOptions {
  return options;
}

/** Words of a file name that can be a part of the id of a collection. */
const wordsOf = (name: string) =>
  stemOf(name)
    .toLowerCase()
    .match(/[a-z0-9]+/g) ?? [];

/** The words that all names have, up to the first date. */
function suggestedCollection(paths: readonly string[]): string {
  const [first = [], ...others] = paths.map((path) => wordsOf(basename(path)));
  const end = first.findIndex(
    (word, i) => /^\d{4,}$/.test(word) || others.some((words) => words[i] !== word),
  );
  const common = end === -1 ? first : first.slice(0, end);
  const words = common.length > 0 ? common : wordsOf(basename(dirname(paths[0] ?? '')));
  return words.join('-').slice(0, 60).replace(/-$/, '') || 'my-collection';
}

/** Undefined unless all failures are of rasters that lack facts which options or their names state. */
export function suggestedOptions(
  failed: IngestResults['failed'],
  { collection, namePattern, bands, maskBand }: IngestInputs,
): IngestResults['suggested'] {
  const lacking = failed.filter(({ code }) => code === collectionNotNamed.code || code === noDatetime.code);
  const paths = failed.map(({ path }) => path);
  const isPacked = paths.some((path) => /\.(zip|tar|t?gz)$/i.test(path) || isRemoteAddress(path));
  if (failed.length === 0 || lacking.length < failed.length || namePattern !== undefined || isPacked)
    return undefined;
  // Names take precedence over times in files, so a pattern is for files that have none.
  const isUndated = lacking.every(({ message }) => /--datetime|--name-pattern/.test(message));
  const names = isUndated ? paths.map((path) => basename(path)) : [];
  const pattern = proposeNamePattern(names, (bands ?? maskBand) !== undefined);
  const lacksTime = lacking.some(({ message }) => message.includes('--datetime'));
  if (pattern === undefined && lacksTime) return undefined;
  return {
    ...(collection === undefined && { collection: suggestedCollection(paths) }),
    ...(pattern !== undefined && { namePattern: pattern }),
  };
}

/** Describes the scenes of an input, which consists of `files`. Throws TW_INGEST_... and TW_RASTER_... */
export function describeScenes(
  pool: IngestPool,
  { nodata, ...options }: IngestOptions,
  path: string,
  files: string[],
  signal: AbortSignal,
): Promise<Scene[]> {
  const described = nodata === undefined ? options : { ...options, nodata: nodata === 'nan' ? NaN : nodata };
  return pool.describe(path, described, files, signal);
}

/** One line that summarises the job. */
export function jobSummary(
  { scenes, failed }: Pick<IngestResults, 'scenes' | 'failed'>,
  dryRun = false,
): string {
  const same = scenes.filter(({ unchanged }) => unchanged).length;
  const made = `${plural(scenes.length - same, 'scene')} ingested${same > 0 ? `, ${same} unchanged` : ''}`;
  const done = dryRun ? `${plural(scenes.length, 'scene')} checked, none ingested` : made;
  return failed.length === 0 ? done : `${done}, ${failed.length} failed: ${failed[0].message}`;
}
