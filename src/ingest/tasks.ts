/** What the ingest threads are asked to do. */
import type { GridName } from '../geocode/index.js';
import type { Affine, Crs, DataType, Resampling } from '../raster/index.js';
import type { GroupRecord } from '../storage/index.js';
import type { DecodeTask } from './row-window.js';
import type { QualityBand, Resolution } from './scene.js';

export interface CutBand {
  name: string;
  commonName?: string;
  scale: number;
  offset: number;
  /** Rows [rowStart, rowEnd) of the source, shared with other threads and not written while cells are cut. */
  pixels: SharedArrayBuffer;
}

export interface CutGroup {
  name: string;
  role: 'data' | 'qa';
  resampling: Resampling;
  resolution: Resolution;
  nodata: number | null;
  dataType: DataType;
  crs: Crs;
  transform: Affine;
  /** Size of the whole source raster. */
  width: number;
  height: number;
  rowStart: number;
  rowEnd: number;
  bands: CutBand[];
}

/** Cut one cell out of a scene and write its files into a folder, durably. */
export interface CutTask {
  kind: 'cut';
  grid: GridName;
  geocode: string;
  groups: CutGroup[];
  /** Index of the finest data group, whose size the mask has. */
  finest: number;
  quality: QualityBand[];
  folder: string;
  metadata: Record<string, string>;
}

/** What was written; null where no data band holds a valid pixel in the cell, and then nothing was. */
export interface CutResult {
  groups: GroupRecord[];
  coverage: number;
  cloudCover: number | null;
  footprint: [x: number, y: number][];
}

export type IngestTask = DecodeTask | CutTask;
