/** What an ingest is given, and whom it tells how far it is. */
import type { GridName } from '../grid/index.js';
import type { DescribeOptions } from './scene.js';

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
