import type { NewTile } from '../../derive/index.js';
import type { PixelGrid } from '../../grid/index.js';
import type { AcquisitionFiles } from '../data/index.js';
import type { ModelFiles, TileHalo } from '../halo/index.js';

/** Task of a child process: the prediction of one tile. */
export interface PredictTask {
  tile: NewTile;
  /** Name and files of the model. */
  model: { name: string } & ModelFiles;
  date: AcquisitionFiles;
  /** Other dates of the cell, for cloud removal of a tile that is mapped alone. */
  others?: AcquisitionFiles[];
  /** The surroundings of the tile. Absent if it is mapped alone. */
  halo?: TileHalo;
  /** Size at which the inputs are read and the tile is written. Default: the size of the coarsest input. */
  size?: PixelGrid;
  /** True if the bands are 8-bit counts without a scale, which are read as fractions of 255. */
  areCounts?: boolean;
  /** Names of the groups of the tile by their size, `<width>x<height>`. */
  groups: Record<string, string>;
}
