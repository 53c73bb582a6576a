/** The dates of a place, by their files. */
import type { BandName } from '../models/index.js';

/** One band of a raster file. Physical value = stored * scale + offset. */
export interface BandSource {
  path: string;
  /** From 0. */
  band: number;
  scale: number;
  offset: number;
}

/** The files of one date of a place. */
export interface AcquisitionFiles {
  /** Milliseconds since 1970. */
  time: number;
  bands: Partial<Record<BandName, BandSource>>;
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
