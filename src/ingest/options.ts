/** What an ingest is given, and whom it tells how far it is. */
import type { GridName } from '../grid/index.js';
import type { Storage } from '../storage/index.js';
import type { IngestPool } from './cut/ingest-pool.js';
import type { SharedMemory } from './cut/shared-memory.js';
import type { FileDigests } from './job/fingerprint.js';
import type { DescribeOptions } from './scene.js';

export interface IngestContext {
  storage: Storage;
  pool: IngestPool;
  /** Holds the source rows of all scenes that are being cut. */
  memory: SharedMemory;
  /** LightGBM model of s2cloudless, where the operator has one. */
  cloudModel: string | undefined;
  digests: FileDigests;
}

/** Plain JSON. */
export interface IngestOptions extends Omit<DescribeOptions, 'nodata'> {
  /** JSON has no NaN. */
  nodata?: number | 'nan';
  grid?: GridName;
  precision?: number;
  /** Only says which tiles there would be. */
  dryRun?: boolean;
  /** How blocks of cubes are stored; not compressed by default. */
  compress?: 'deflate';
  /** Tests reflectance for cloud where the product has no mask. */
  cloudTest?: boolean;
}

export interface IngestHooks {
  signal?: AbortSignal;
  /** Called with the number of cells of the scene before it is cut. */
  onCells?(total: number): void;
  /** Called as work goes on, with the share that is done: 0 to 1. */
  onProgress?(share: number): void;
  /** Called with the number of cells that hold data. */
  onTiles?(tiles: number): void;
  /** Called when all is read and nothing is committed; what it throws fails the scene. */
  onRead?(): Promise<void>;
}
