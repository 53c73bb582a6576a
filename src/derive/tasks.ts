/** Tasks of the threads of `DerivePool`, and tiles that they make. Plain data. */
import type { BandIndex, Program } from '../expressions/index.js';
import type { GridName, PixelGrid } from '../grid/index.js';
import type { CellFile } from '../ingest/index.js';
import type { DataType, ImageFile } from '../raster/index.js';
import type { GroupRecord, TileRecord } from '../storage/index.js';

/** A stored tile with the places of its images. */
export interface TileFiles {
  grid: GridName;
  geocode: string;
  groups: (GroupRecord & ImageFile)[];
}

/** The properties of a new tile that its files hold. */
export interface NewTile {
  grid: GridName;
  geocode: string;
  metadata: Record<string, string>;
}

/** Percent, 0 to 100. */
export interface FillTargets {
  /** Fill until at least this share of the cell holds data. */
  coverage: number;
  /** Fill until at most this share of the cell is cloud. */
  cloud: number;
}

/** Fills pixels of `base` that are cloud, shadow or no data from `donors`, in their order. */
export interface FillTileTask {
  kind: 'fill';
  tile: NewTile;
  base: TileFiles;
  donors: TileFiles[];
  targets: FillTargets;
  /** Metres by which the masks of all tiles are widened. */
  dilate: number;
}

/** Cuts a cell out of tiles of one scene, which do not overlap. */
export interface CutTileTask {
  kind: 'cut';
  tile: NewTile;
  sources: TileFiles[];
  /** Pixels of each group of the first source, the mask included. */
  sizes: PixelGrid[];
}

/** A band of a tile, or an expression over bands. */
export interface TensorBand {
  program: Program;
  /** The bands of the program. */
  places: BandIndex[];
}

/** Resamples bands of a tile, and computes expressions over them, at one size. */
export interface TensorBandsTask {
  tile: TileFiles;
  /** Null for a plane that needs a band which the tile lacks. */
  planes: (TensorBand | null)[];
  size: PixelGrid;
  /** Type of stored numbers, with `empty` for no data; null for physical values as float32, with NaN for no data. */
  stored: { dataType: DataType; empty: number } | null;
}

/** A file of a new tile, see `CellFile`. `bytes` is null if the maker has already written it into the tile's folder. */
interface MadeFile {
  name: string;
  bytes: CellFile['bytes'] | null;
}

/** The files of a new tile, and properties that its pixels determine. */
export interface MadeTile
  extends Pick<
    TileRecord,
    'coverage' | 'cloudCover' | 'estimated' | 'otherDates' | 'footprint' | 'dataParts' | 'groups'
  > {
  files: MadeFile[];
  /** Indexes of the inputs that gave pixels, in the order of `derived_from`. */
  used: number[];
  /** Percent of the pixels with data that were not assessed for cloud, and that are cloud or cloud shadow. */
  shares: { notAssessed: number; stillCloud: number };
  /** Warnings about its pixels. */
  warnings?: string[];
  /** If clouds were replaced. */
  rims?: RimPixels;
}

/** Pixels of a tile that its mask calls clear, and how many of them were replaced because they are close to cloud. */
export interface RimPixels {
  clear: number;
  replaced: number;
}
