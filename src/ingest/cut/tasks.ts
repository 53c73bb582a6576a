/** Tasks of the ingest threads, and their results. */
import type { GridName } from '../../grid/index.js';
import {
  type ColourTable,
  type DataType,
  findValidityBand,
  type RasterHeader,
  type Resampling,
  type SpectralTags,
  type ValidityBand,
} from '../../raster/index.js';
import type { ClassRecord, GroupRecord, TileRecord } from '../../storage/index.js';
import type { ClassifiedLight, FoundCloud, ModelledCloud, SharedLight } from '../cloud/detect.js';
import type { GeoBox } from '../georeferencing.js';
import type { MaskSource } from '../plan.js';
import type { DescribeOptions, Scene } from '../scene.js';
import type { DecodeRequest } from './memory.js';
import type { NegativeCount } from './negative-reflectances.js';
import type { GroupValidity } from './validity.js';

/** Describe the scenes of an input, in a thread because a library may hang on a damaged header. */
interface DescribeTask {
  kind: 'describe';
  path: string;
  options: DescribeOptions;
  /** See `describeScenes`. */
  files: string[];
}

/** Decode rows into memory that no other task accesses at the same time. */
export interface DecodeTask {
  kind: 'decode';
  reads: DecodeRequest[];
}

/**
 * Divides reads into tasks. Reads through GDAL are distributed over a few tasks, each for one process, because processes are
 * slow to start. Every other read is a separate task.
 */
export function decodeTasks(reads: DecodeRequest[], processes: number): DecodeTask[] {
  const throughGdal = reads.filter(({ header }) => header.blocks.reader === 'gdal');
  const shares = Array.from({ length: processes }, (_, share) =>
    throughGdal.filter((_, i) => i % processes === share),
  );
  const others = reads.filter((read) => !throughGdal.includes(read)).map((read) => [read]);
  return [...shares.filter((share) => share.length > 0), ...others].map((reads) => ({
    kind: 'decode',
    reads,
  }));
}

/** Rows [rowStart, rowEnd) of some bands of a source, in memory that is not written while cells are cut. */
export interface SourceRows extends GeoBox {
  dataType: DataType;
  nodata: number | null;
  rowStart: number;
  rowEnd: number;
  buffer: SharedArrayBuffer;
  /** Offset of each band in the buffer, bytes. */
  offsets: number[];
  /** For each band, its validity band in memory (0 = no data), or null if only the nodata value counts. */
  validity: (BufferBand | null)[];
}

/** A band of the source's rows in its buffer. */
interface BufferBand {
  dataType: DataType;
  /** Offset in the buffer, bytes. */
  offset: number;
}

/** A band with the properties that the file of a cell records. */
export interface CellBand extends SpectralTags {
  name: string;
  commonName?: string;
  scale: number;
  offset: number;
  classes?: ClassRecord[];
}

/** One cell's part of one band group, with the properties that its file records. */
export interface CellGroup {
  grid: GridName;
  geocode: string;
  /** Pixels of the group in this cell. */
  width: number;
  height: number;
  name: string;
  role: 'data' | 'qa';
  resampling: Resampling;
  dataType: DataType;
  nodata: number | null;
  colours: ColourTable | undefined;
  bands: CellBand[];
  metadata: Record<string, string>;
  /** True if the blocks of a cube are compressed; false by default. Blocks of other groups are always compressed. */
  compressed?: boolean;
  /** True if the bands of a cube without a nodata value can lack data at different pixels, so that each has a mask of its own. */
  maskOfEachBand?: boolean;
}

/** Cut the groups of one file of one cell out of their sources; for the file of the finest data group, also the mask. */
export interface WarpTask {
  kind: 'cut';
  cells: CellGroup[];
  /** All sources in memory, first those of the groups. */
  sources: SourceRows[];
  /** Null if the task makes no mask. */
  mask: {
    /** Index of the group whose pixels the mask has. */
    reference: number;
    /** Quality codes by source and band. */
    quality: MaskSource[];
    /** The data groups of the cell in other files. */
    others: GroupValidity[];
  } | null;
}

/**
 * `WarpTask` for a file with cubes, which are cut some rows of blocks at a time. The task uses its part of the buffer for pixels, and
 * writes the file.
 */
export interface CubeTask {
  kind: 'cube';
  cells: CellGroup[];
  /** The rasters of each group, then those of other groups with quality bands. */
  sources: SourceFiles[];
  /** Path of the file, which must not exist. */
  path: string;
  buffer: SharedArrayBuffer;
  offset: number;
  bytes: number;
  mask: WarpTask['mask'];
}

/** The bands of a group in their files. */
export interface SourceFiles {
  nodata: number | null;
  /** `detector` as in `SourceBand`. */
  bands: (SourceRaster & { detector?: string | undefined })[];
}

/** A band of a file. */
export interface SourceRaster {
  header: RasterHeader;
  index: number;
}

/** Encode a file of empty groups: the cell holds no data of them. */
export interface EmptyFileTask {
  kind: 'blank';
  cells: CellGroup[];
}

/** Classify the pixels of a cell, in a scene whose cloud is detected by reflectance. */
export interface ClassifyLightTask extends ClassifiedLight {
  kind: 'light';
}

/** Find cloud and shadow among the classified pixels of all cells. */
export interface FindCloudTask {
  kind: 'shadow';
  light: SharedLight;
  sunAzimuth: number | undefined;
}

/** Replace the mask of a cell, the last image of its file, by one that is detected in its staged files. */
export type DetectCloudTask = (FoundCloud | ModelledCloud) & {
  kind: 'assess';
  /** The group whose size the mask has. */
  cell: CellGroup;
  /** The record of the staged mask. */
  mask: GroupRecord;
};

/** An encoded image of a tile, before it is placed in a file. */
export interface CellImage {
  record: Omit<GroupRecord, 'file' | 'bytes' | 'crc32'>;
  bytes: Buffer;
}

/** A file of a tile. */
export interface CellFile {
  /** Without `.tif`. */
  name: string;
  bytes: Uint8Array<ArrayBuffer>;
  /** Its images. */
  groups: GroupRecord[];
}

/** Properties of a tile that its mask determines. */
export interface MaskFigures
  extends Pick<TileRecord, 'cloudCover' | 'footprint' | 'dataParts' | 'estimated' | 'otherDates'> {
  /** Percent of the pixels with data. */
  shares: { notAssessed: number; stillCloud: number };
}

/** A file that is cut out of a cell. */
export interface CutResult {
  /** `bytes`: null if the task has written the file. */
  file: Omit<CellFile, 'bytes'> & { bytes: CellFile['bytes'] | null };
  /** The validity of its data groups, for a mask that is made later; empty with a mask. */
  validity: GroupValidity[];
  /** If the file has the mask: its figures, and percent of its pixels with data in every band of the tile. */
  mask: (MaskFigures & { coverage: number }) | null;
  /** See `countNegative`. */
  negative?: NegativeCount | undefined;
}

/** A mask that has replaced the staged one. */
export interface AssessedMask extends MaskFigures {
  record: GroupRecord;
}

export type IngestTask =
  | DescribeTask
  | DecodeTask
  | WarpTask
  | CubeTask
  | EmptyFileTask
  | ClassifyLightTask
  | FindCloudTask
  | DetectCloudTask;

/** By kind of task; null if the cell holds no data of the file, or with a mask, if it holds none at all. */
export interface IngestResults {
  describe: Scene[];
  decode: null;
  cut: CutResult | null;
  cube: CutResult | null;
  blank: CutResult;
  light: null;
  shadow: null;
  assess: AssessedMask;
}
export type IngestResult = IngestResults[keyof IngestResults];

interface ValidityBands {
  /** Each once. */
  validity: ValidityBand[];
  /** For each band of the group, the index of its validity band; null if all its pixels count. */
  ofBands: (number | null)[];
}

/** The internal masks and alpha bands of the files of a group. */
export function validityBands({ bands }: { bands: readonly SourceRaster[] }): ValidityBands {
  const validity: ValidityBand[] = [];
  const ofBands = bands.map(({ header, index }) => {
    const found = findValidityBand(header, index);
    if (!found) return null;
    const at = validity.findIndex((one) => one.header === found.header && one.index === found.index);
    return at === -1 ? validity.push(found) - 1 : at;
  });
  return { validity, ofBands };
}
