/** The surroundings of a tile as references to files, and the models that are blended at its borders. */
import type { LayersModel } from '@tensorflow/tfjs-layers';
import type { PixelGrid } from '../../grid/index.js';
import type { ModelFileLocation } from '../../storage/index.js';
import type { AcquisitionFiles } from '../data/index.js';
import type { HaloImage } from '../inference/index.js';
import type { CellOffset } from './neighbour-blend-weights.js';

export interface ModelFiles {
  topology: ModelFileLocation;
  weights: ModelFileLocation;
}

/** Returns a model that is good until the next call. */
export type LoadModel = (files: ModelFiles) => Promise<LayersModel>;

/** The other dates of a cell that cloud removal reads. */
export interface CellDates {
  /** Scenes of the prior of the cell, the nearest in time first. All have files. */
  prior: string[];
  /** Files by scene. The priors of the cells around it can have more scenes. */
  files: Record<string, AcquisitionFiles>;
}

/** A tile of the same scene in one of the eight cells around a tile. */
export interface TileNeighbour extends CellOffset {
  date: AcquisitionFiles;
  /** Size of the whole tile. */
  size: PixelGrid;
  /** The model that maps it. Absent if it cannot map the tile: the models are then not blended at their border. */
  model?: ModelFiles;
  /** For cloud removal. */
  dates?: CellDates;
}

export interface TileHalo {
  origin: HaloImage['origin'];
  neighbours: TileNeighbour[];
  /** The dates of the cell of the tile, for cloud removal. */
  dates?: CellDates;
}

/** A tile that is mapped with its surroundings. */
export interface HaloTask {
  model: ModelFiles;
  date: AcquisitionFiles;
  halo: TileHalo;
}
