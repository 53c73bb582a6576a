import type { NewTile } from '../../derive/index.js';
import type { PixelGrid } from '../../grid/index.js';
import type { ModelFileLocation } from '../../storage/index.js';
import type { AcquisitionFiles } from '../data/index.js';

/** Task of a child process: the prediction of one tile. */
export interface PredictTask {
  tile: NewTile;
  /** Name and files of the model. */
  model: { name: string; topology: ModelFileLocation; weights: ModelFileLocation };
  date: AcquisitionFiles;
  /** Other dates of the cell, for cloud removal. */
  others?: AcquisitionFiles[];
  /** Size at which the inputs are read and the tile is written. Default: the size of the coarsest input. */
  size?: PixelGrid;
  /** True if the bands are 8-bit counts without a scale, which are read as fractions of 255. */
  areCounts?: boolean;
  /** Names of the groups of the tile by their size, `<width>x<height>`. */
  groups: Record<string, string>;
}
