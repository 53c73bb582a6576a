/** Size and value kind of the pixels that a model is trained on. */

/**
 * Kind of band values. Scaled counts are 8-bit numbers without a scale, divided by 255: fractions of the range of their type, without
 * calibration.
 */
export type BandValueKind = 'reflectance' | 'scaled counts';

/** A pixel size of tiles. */
export interface TilePixels {
  /** Name of the band group with this pixel size, such as `20m`. */
  group: string;
  /** Size of the cell in pixels. Absent if it describes many cells. */
  width?: number;
  height?: number;
}

/** Pixels of a training, as the model card describes them. */
export interface TrainedPixels {
  /** Absent if the cells of one model have different pixel sizes. */
  pixelSize?: TilePixels;
  values: BandValueKind;
}
