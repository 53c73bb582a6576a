/** The pixels that a model is trained on: their size and the kind of their values. */

/**
 * The kind of the values of bands. Scaled counts are 8-bit numbers that have no scale, divided by 255: a part of the range
 * of their type, without calibration.
 */
export type BandValueKind = 'reflectance' | 'scaled counts';

/** A pixel size of tiles. */
export interface TilePixels {
  /** The name of the band group that has it, such as `20m`. */
  group: string;
  /** Pixels of the cell; absent if it is about many cells. */
  width?: number;
  height?: number;
}

/** The pixels of a training, as the card of the model describes them. */
export interface TrainedPixels {
  /** Absent if the places of one model differ in it. */
  pixelSize?: TilePixels;
  values: BandValueKind;
}
