/** Options of an ingest, and callbacks for its progress. */
import type { Bbox, GridName } from '../grid/index.js';
import type { DescribeOptions } from './ingest-scene-description.js';

/** Plain JSON. */
export interface IngestOptions extends Omit<DescribeOptions, 'nodata'> {
  /** JSON has no NaN. */
  nodata?: number | 'nan';
  grid?: GridName;
  precision?: number;
  /** Region in degrees. Only its cells are made, each as a whole. West > east crosses the antimeridian. */
  bbox?: Bbox;
  /** Only lists the tiles that would be made. */
  dryRun?: boolean;
  /** Compression of the blocks of cubes; none by default. */
  compress?: 'deflate';
  /** Detects cloud by reflectance if the product has no mask. */
  cloudTest?: boolean;
}

export interface IngestHooks {
  signal?: AbortSignal;
  /** Called with the number of cells of the scene before it is cut. */
  onCells?(total: number): void;
  /** Called repeatedly with the completed fraction: 0 to 1. */
  onProgress?(share: number): void;
  /** Called with the number of cells that hold data. */
  onTiles?(tiles: number): void;
  /** Called when all pixels are read, before the commit. An error fails the scene. */
  onRead?(): Promise<void>;
}
