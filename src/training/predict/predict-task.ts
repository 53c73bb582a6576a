import type { NewTile } from '../../derive/index.js';
import type { PixelGrid } from '../../grid/index.js';
import type { ModelFileLocation } from '../../storage/index.js';
import type { AcquisitionFiles } from '../data/index.js';

/** Task of a child process: the prediction of one tile. */
export interface PredictTask {
  tile: NewTile;
  /** Name of the model's description, and its files. */
  model: { name: string; topology: ModelFileLocation; weights: ModelFileLocation };
  date: AcquisitionFiles;
  /** Other dates of the place, for a model that removes cloud. */
  others?: AcquisitionFiles[];
  /** At which the inputs are read and the tile is written; by default that of the coarsest input. */
  size?: PixelGrid;
  /** True if the bands are 8-bit counts without a scale, which are read as parts of 255. */
  areCounts?: boolean;
  /** Names of the tile's groups by their size, `<width>x<height>`. */
  groups: Record<string, string>;
}
