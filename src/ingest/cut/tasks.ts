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

/** Cut one group of one cell out of its sources; for the finest data group, which is cut last, also the mask. */
export interface WarpTask {
  kind: 'cut';
  cell: CellGroup;
  /** All sources in memory. */
  sources: SourceRows[];
  /** Index of the group's own source. */
  source: number;
  /** Null if the task makes no mask. */
  mask: {
    /** Quality codes by source and band. */
    quality: { source: number; band: number; codes: Uint8Array }[];
    /** The other data groups of the cell. */
    others: GroupValidity[];
  } | null;
}

/**
 * Cut a cube out of one cell, some rows of blocks at a time, into a file; for the finest data group, also make the mask. The
 * task uses its part of the buffer for pixels.
 */
export interface CubeTask {
  kind: 'cube';
  cell: CellGroup;
  /** `detector` as in `SourceBand`. */
  bands: (SourceRaster & { detector?: string | undefined })[];
  /** Path of the file, which must not exist. */
  path: string;
  buffer: SharedArrayBuffer;
  offset: number;
  bytes: number;
  /** As of `WarpTask`. */
  mask: {
    quality: (SourceRaster & { nodata: number | null; codes: Uint8Array })[];
    others: GroupValidity[];
  } | null;
}

/** A band of a file. */
interface SourceRaster {
  header: RasterHeader;
  index: number;
}

/** Encode an empty group: the cell holds no data of it. */
export interface EmptyTileTask {
  kind: 'blank';
  cell: CellGroup;
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

/** Replace the mask of a cell by one that is detected in its staged files. */
export type DetectCloudTask = (FoundCloud | ModelledCloud) & {
  kind: 'assess';
  /** The group whose size the mask has. */
  cell: CellGroup;
};

/** An encoded file of a tile. */
export interface CellFile {
  record: GroupRecord;
  bytes: Uint8Array<ArrayBuffer>;
}

export interface MaskResult
  extends Pick<TileRecord, 'cloudCover' | 'footprint' | 'dataParts' | 'estimated' | 'otherDates'> {
  file: CellFile;
}

/** The mask of a tile, and percent of its pixels with data in every band of the tile. */
export type TileMask = MaskResult & { coverage: number };

/** A `CutResult` whose file is already written. */
export interface CubeResult extends Omit<CutResult, 'file' | 'negative'> {
  record: GroupRecord;
}

export interface CutResult {
  file: CellFile;
  validity: GroupValidity;
  mask: TileMask | null;
  /** See `countNegative`. */
  negative?: NegativeCount;
}

export type IngestTask =
  | DescribeTask
  | DecodeTask
  | WarpTask
  | CubeTask
  | EmptyTileTask
  | ClassifyLightTask
  | FindCloudTask
  | DetectCloudTask;

/** By kind of task; null if the cell holds no data of the group. */
export interface IngestResults {
  describe: Scene[];
  decode: null;
  cut: CutResult | null;
  cube: CubeResult | null;
  blank: CutResult;
  light: null;
  shadow: null;
  assess: MaskResult;
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
