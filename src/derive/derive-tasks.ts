/** What the wrangling threads are asked to do. Plain data. */

import type { BandIndex, Program } from '../expressions/index.js';
import type { GridName, PixelGrid } from '../grid/index.js';
import type { CellFile } from '../ingest/index.js';
import type { CogImage, DataType, PixelArray } from '../raster/index.js';
import type { GroupRecord } from '../storage/index.js';

/** A stored tile as a thread opens it. */
export interface TileFiles {
  grid: GridName;
  geocode: string;
  groups: (GroupRecord & { path: string })[];
}

/** What the files of a new tile say of it. */
export interface NewTile {
  grid: GridName;
  geocode: string;
  metadata: Record<string, string>;
}

/** Percent, 0 to 100. */
export interface FillTargets {
  /** Pixels of other dates are taken until so much of the cell holds data ... */
  coverage: number;
  /** ... and no more of it is cloud. */
  cloud: number;
}

/** Fill the holes, clouds and shadows of `base` from `donors`, in their order. */
export interface FillTileTask {
  kind: 'fill';
  tile: NewTile;
  base: TileFiles;
  donors: TileFiles[];
  targets: FillTargets;
}

/** Cut a cell out of tiles of one scene, which do not overlap. */
export interface CutTileTask {
  kind: 'cut';
  tile: NewTile;
  sources: TileFiles[];
  /** Pixels of each group of the first source, the mask included. */
  sizes: PixelGrid[];
}

/** A band of a tile, or what an expression makes of some of them. */
export interface TensorBand {
  program: Program;
  /** The bands of the program. */
  places: BandIndex[];
}

/** Bring bands of a tile, and expressions over them, to one size. */
export interface TensorBandsTask {
  kind: 'planes';
  tile: TileFiles;
  /** Null for one of which the tile lacks a band. */
  planes: (TensorBand | null)[];
  size: PixelGrid;
  /** Stored numbers of this type, `empty` where there is no data; null for physical values as float32 and NaN. */
  stored: { dataType: DataType; empty: number } | null;
}

/** Make one GeoTIFF of planes. */
export interface StackTask {
  kind: 'stack';
  image: CogImage;
}

export type DeriveTask = FillTileTask | CutTileTask | TensorBandsTask | StackTask;

/** A file of a new tile. `bytes` is null if the maker has already written it into the tile's folder, as `<group>.tif`. */
export interface MadeFile {
  record: GroupRecord;
  bytes: CellFile['bytes'] | null;
}

/** The files of a new tile, and what follows from its pixels. */
export interface MadeTile {
  /** The mask comes last. */
  files: MadeFile[];
  /** Percent of the pixels that hold data in every band, of the data group that has the least. */
  coverage: number;
  cloudCover: number | null;
  /** Closed ring around the valid pixels, in grid coordinates. */
  footprint: [x: number, y: number][];
  /** Which of the inputs gave pixels: their numbers, in the order in which `derived_from` names them. */
  used: number[];
}

/** `files` of a tile; null where there is nothing to make; planes of a tile; the bytes of a stack. */
export type DeriveTaskResult = MadeTile | null | PixelArray[] | Uint8Array;
