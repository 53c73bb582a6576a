/** A scene as its format describes it, before any pixel is read. Plain data: parts of it are sent to worker threads. */
import type { RasterHeader } from '../raster/index.js';

/** Pixel size on the ground in metres, along columns and rows. */
export interface Resolution {
  x: number;
  y: number;
}

export interface SourceBand {
  name: string;
  /** STAC eo common name: red, green, blue, nir, swir16 ... */
  commonName?: string;
  header: RasterHeader;
  /** Index of the band within its file, from 0. */
  index: number;
  /** Physical value = stored * scale + offset. */
  scale: number;
  offset: number;
}

/** Bands of one pixel size, data type and role; they share one position. */
export interface SourceGroup {
  name: string;
  role: 'data' | 'qa';
  /** Nominal, so that it is the same for all scenes of a product. */
  resolution: Resolution;
  /** Stored value that means "no data", null where every value is data. */
  nodata: number | null;
  bands: SourceBand[];
}

/** Which quality band says what is cloud, and how: `codes[stored value]` is a mask code, 255 where the band says nothing. */
export interface Quality {
  group: string;
  band: number;
  codes: Uint8Array;
}

export interface Scene {
  /** The file or folder it was read from, for messages. */
  path: string;
  id: string;
  collection: { id: string; title: string; license: string; attribution?: string };
  platform: string | null;
  /** Milliseconds since 1970. */
  start: number;
  end: number;
  groups: SourceGroup[];
  quality: Quality | null;
  warnings: string[];
}

/** What the user says of a raster that does not say it itself. Bands count from 1. */
export interface DescribeOptions {
  collection?: string;
  id?: string;
  datetime?: string;
  bands?: Record<string, number>;
  nodata?: number;
  scale?: number;
  offset?: number;
  platform?: string;
  maskBand?: number;
}

/** One file a product. A new product is one new file in `formats/` and its line in `formats/index.ts`. */
export interface SceneFormat {
  /** The scene in this file or folder, or null where it is something else. Throws where it is this product but broken. */
  describe(path: string, options: DescribeOptions): Promise<Scene | null>;
}
