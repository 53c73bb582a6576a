/** Dates of a cell as references to files. */
import type { BandName } from '../models/index.js';

/** One band of a raster file. Physical value = stored value * scale + offset. */
export interface BandSource {
  path: string;
  /** Index from 0. */
  band: number;
  scale: number;
  offset: number;
}

/** Files of one date of a cell. */
export interface AcquisitionFiles {
  /** Milliseconds since 1970. */
  time: number;
  bands: Partial<Record<BandName, BandSource>>;
  /** Path of the mask, whose resolution is that of the bands or finer. */
  mask: string;
}

/** A cloudy date and a clear one, as indices into a list of dates. */
export interface DatePair {
  cloudy: number;
  clear: number;
  /** Other dates for the temporal prior, the nearest in time first. Default: none. */
  prior?: number[];
}
