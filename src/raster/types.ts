/** Words shared by everything that touches pixels. */

export type DataType = 'uint8' | 'int8' | 'uint16' | 'int16' | 'uint32' | 'int32' | 'float32' | 'float64';

export type PixelArray =
  | Uint8Array
  | Int8Array
  | Uint16Array
  | Int16Array
  | Uint32Array
  | Int32Array
  | Float32Array
  | Float64Array;

/**
 * Position of a raster: x = originX + xx * column + xy * row, y = originY + yx * column + yy * row, where column 0 and row 0
 * are the outer corner of the upper left pixel (RasterPixelIsPoint is already accounted for).
 */
export interface Affine {
  originX: number;
  originY: number;
  xx: number;
  xy: number;
  yx: number;
  yy: number;
}

export interface Crs {
  /** Undefined where the file defines its own system. */
  epsg: number | undefined;
  proj4: string;
  geographic: boolean;
}

/** How a TIFF's pixels lie in the file. Strips are blocks as wide as the image. */
export interface BlockLayout {
  width: number;
  height: number;
  /** True where each band has blocks of its own (PlanarConfiguration 2). */
  planar: boolean;
  compression: number;
  predictor: number;
  offsets: ArrayLike<number>;
  byteCounts: ArrayLike<number>;
  littleEndian: boolean;
}

/** What a band says of itself in the GDAL metadata of its file. Physical value = stored * scale + offset. */
export interface BandTags {
  description?: string;
  scale?: number;
  offset?: number;
}

/** Everything known of a raster before its pixels are read. Plain data: it can be sent to a worker thread. */
export interface RasterHeader {
  path: string;
  fileBytes: number;
  width: number;
  height: number;
  bands: number;
  dataType: DataType;
  crs: Crs;
  transform: Affine;
  nodata: number | undefined;
  blocks: BlockLayout;
  bandTags: BandTags[];
  /** GDAL dataset-level metadata items. */
  metadata: Record<string, string>;
  /** TIFF DateTime tag (306), as stored. */
  dateTime: string | undefined;
}

export interface Window {
  column: number;
  row: number;
  width: number;
  height: number;
}

export type Resampling = 'nearest' | 'bilinear';

/** Codes of the group `mask`. */
export const Mask = { nodata: 0, clear: 1, cloud: 2, shadow: 3, snow: 4, notAssessed: 255 } as const;
