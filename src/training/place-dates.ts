/** The dates of a place, by their files. */
import type { BandName } from './models/spec.js';

/** One band of a raster file. Physical value = stored * scale + offset. */
export interface BandFile {
  path: string;
  /** From 0. */
  band: number;
  scale: number;
  offset: number;
}

/**
 * What the physical values of bands are. Scaled counts are 8-bit numbers that have no scale, divided by 255: a part of the range
 * of their type, without calibration.
 */
export type BandValues = 'reflectance' | 'scaled counts';

/** A pixel size of tiles. */
export interface TilePixels {
  /** The name of the band group that has it, such as `20m`. */
  group: string;
  /** Pixels of the cell; absent if it is about many cells. */
  width?: number;
  height?: number;
}

/** What the card of a model says of the pixels that it was trained on. */
export interface TrainedPixels {
  /** Absent if the places of one model differ in it. */
  pixelSize?: TilePixels;
  values: BandValues;
}

/** The files of one date of a place. */
export interface PlaceDate {
  /** Milliseconds since 1970. */
  time: number;
  bands: Partial<Record<BandName, BandFile>>;
  /** Path of the mask, of the bands' size or finer. */
  mask: string;
}

/** A cloudy date and one without cloud, as indices of dates. */
export interface DatePair {
  cloudy: number;
  clear: number;
  /** Other dates, which show what is below the clouds, the nearest in time first. Default: none. */
  prior?: number[];
}
