import type { NewTile } from '../../derive/index.js';
import type { PixelGrid } from '../../grid/index.js';
import type { ModelFileLocation } from '../../storage/index.js';
import type { AcquisitionFiles } from '../data/index.js';
import type { HaloImage } from '../inference/index.js';
import type { CellOffset } from './neighbour-blend-weights.js';

export interface PredictModelFiles {
  topology: ModelFileLocation;
  weights: ModelFileLocation;
}

/** The other dates of a cell that cloud removal reads. */
export interface CellDates {
  /** Scenes of the prior of the cell, the nearest in time first. All have files. */
  prior: string[];
  /** Files by scene. The priors of the cells around it can have more scenes. */
  files: Record<string, AcquisitionFiles>;
}

/** A tile of the same scene in one of the eight cells around a tile. */
export interface PredictNeighbour extends CellOffset {
  date: AcquisitionFiles;
  /** Size of the whole tile. */
  size: PixelGrid;
  /** The model that maps it. Absent if it cannot map the tile: the models are then not blended at their border. */
  model?: PredictModelFiles;
  /** For cloud removal. */
  dates?: CellDates;
}

/** Task of a child process: the prediction of one tile. */
export interface PredictTask {
  tile: NewTile;
  /** Name and files of the model. */
  model: { name: string } & PredictModelFiles;
  date: AcquisitionFiles;
  /** Other dates of the cell, for cloud removal of a tile that is mapped alone. */
  others?: AcquisitionFiles[];
  /** The surroundings of the tile. Absent if it is mapped alone. `dates`: those of the cell of the tile, for cloud removal. */
  halo?: { origin: HaloImage['origin']; neighbours: PredictNeighbour[]; dates?: CellDates };
  /** Size at which the inputs are read and the tile is written. Default: the size of the coarsest input. */
  size?: PixelGrid;
  /** True if the bands are 8-bit counts without a scale, which are read as fractions of 255. */
  areCounts?: boolean;
  /** Names of the groups of the tile by their size, `<width>x<height>`. */
  groups: Record<string, string>;
}
