/** Types that all folders of the part `raster` use. */

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
 * Georeferencing of a raster: x = originX + xx * column + xy * row, y = originY + yx * column + yy * row. Column 0 and row 0
 * are the outer corner of the upper left pixel, even if the file gives the centre of this pixel (RasterPixelIsPoint).
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
  /** Undefined if the file defines its own system. */
  epsg: number | undefined;
  proj4: string;
  geographic: boolean;
  /**
   * Largest error of positions from the datum shift to WGS 84: a single shift is used for the entire area, without shift
   * grids. Infinity if the error is not known, because the accuracy of the shift is not known or `proj4` has no shift (the
   * datum is then treated as WGS 84). Undefined for datums that are equal to WGS 84 within a few metres.
   */
  datumErrorMetres?: number;
}

/** Size of the blocks in which a raster is stored; a block is always decoded completely. */
interface BlockSize {
  width: number;
  height: number;
}

/** Layout of the pixels of a TIFF. Strips are blocks as wide as the image. */
export interface TiffBlocks extends BlockSize {
  reader: 'tiff';
  /** True if each band has blocks of its own (PlanarConfiguration 2). */
  planar: boolean;
  compression: number;
  predictor: number;
  offsets: ArrayLike<number>;
  byteCounts: ArrayLike<number>;
  littleEndian: boolean;
  /** First byte of the image's directory, which identifies the image in its file. */
  directory: number;
  /** Set for masks of one bit per pixel, which are read as 0 and 1. */
  bits?: 1;
  /** Tables that all JPEG blocks share, and true if the colours are YCbCr. */
  jpeg?: { tables?: Uint8Array; isYcbcr: boolean };
  /** Additional compression of LERC blobs: 0 none, 1 deflate, 2 Zstandard. */
  lerc?: number;
}

/** Pixels that GDAL decodes in a separate process: JPEG 2000, HDF4, Erdas Imagine. */
export interface GdalBlocks extends BlockSize {
  reader: 'gdal';
  /** Short name of the only driver that may open the file, such as JP2OpenJPEG. */
  driver: string;
  /** The name that GDAL opens: the path of the file, or the name of one of its layers. */
  dataset: string;
}

/** Stored numbers that mean missing data, in addition to the nodata value and NaN: `fills`, and all numbers below `min` or above `max`. */
export interface MissingNumbers {
  fills: number[];
  min: number;
  max: number;
}

/** A dataset of an HDF5 or netCDF-4 file. Its last two dimensions are rows and columns; the ones before them count bands. */
export interface Hdf5Blocks extends BlockSize {
  reader: 'hdf5';
  /** Path within the file. */
  dataset: string;
  /** True if the first stored row is the southernmost one; the reader then reverses the rows. */
  bottomUp: boolean;
  /** Stored values that the reader replaces by the raster's nodata value. */
  missing?: MissingNumbers;
}

/**
 * A cube of an HDF5 or netCDF-4 file whose bands are interleaved by row or by pixel, as imaging spectrometers deliver them. If
 * its grid is a swath, a lookup table gives the pixel of the swath for each pixel of the raster.
 */
export interface Hdf5CubeBlocks extends BlockSize {
  reader: 'hdf5-cube';
  /** Path within the file. */
  dataset: string;
  /** Index of the band dimension: 1 for (rows, bands, columns), 2 for (rows, columns, bands). */
  bandAxis: 1 | 2;
  /** Sizes of the dataset's dimensions. */
  shape: [number, number, number];
  /** Stored value of pixels without data. The reader replaces it, like NaN, by the raster's nodata value. */
  fill?: number;
  /** Missing data according to the attributes of the dataset; the reader replaces them by the raster's nodata value. */
  missing?: MissingNumbers;
  /**
   * Names of two datasets of the raster's size. For each pixel of the raster, they have the column and the row of its pixel in
   * the swath, counted from 1, or 0 if it has none. The sign is ignored.
   */
  lookup?: { columns: string; rows: string };
  /** A dataset of the cube's shape. A value with one of these bits set marks missing data in the cube. */
  errors?: { dataset: string; bits: number };
}

/** Number formats of raw images: those of `DataType`, and 64-bit integers, which are read as float64. */
export type StoredType = DataType | 'int64' | 'uint64';

/** A raw image that an ENVI header describes. A block is one row. */
export interface EnviBlocks extends BlockSize {
  reader: 'envi';
  /** Interleave: by band (bsq), by row (bil) or by pixel (bip). */
  interleave: 'bsq' | 'bil' | 'bip';
  /** Bytes before the first pixel. */
  headerOffset: number;
  storedType: StoredType;
  littleEndian: boolean;
}

/** An array of rows x columns x bands in a MATLAB file, stored in column order. A block is one row. */
export interface MatBlocks extends BlockSize {
  reader: 'mat';
  /** May be smaller than the type of the variable. */
  storedType: StoredType;
  /** Offset and length of the array's element in the file, bytes. */
  start: number;
  bytes: number;
  /** True if the element is compressed by zlib. */
  isCompressed: boolean;
  /** Offset of the numbers in the decompressed element, bytes. */
  dataOffset: number;
  littleEndian: boolean;
}

/** The reader of a raster, with the layout of the pixels that it reads. */
export type BlockLayout = TiffBlocks | GdalBlocks | Hdf5Blocks | Hdf5CubeBlocks | EnviBlocks | MatBlocks;

/** Spectral properties of a band of an imaging spectrometer. */
export interface SpectralTags {
  /** Centre wavelength, nm. */
  wavelength?: number;
  /** Full width at half maximum, nm. */
  fwhm?: number;
  /** False for a band of the bad-band list (ENVI's bbl is 0). */
  good?: false;
}

/** Metadata of a band. Physical value = stored * scale + offset. */
export interface BandTags extends SpectralTags {
  description?: string;
  scale?: number;
  offset?: number;
}

/** One raster of a file that holds several (HDF4, HDF5, netCDF). */
export interface Subdataset {
  /** Name in the file, such as Maximum_Snow_Extent or /HDFEOS/GRIDS/VNP_Grid_500m_2D/Data Fields/SurfReflect_I1. */
  name: string;
  /** Description for users. */
  description: string;
  /** Sizes of the dimensions; the last two are rows and columns. */
  shape: number[];
}

/** A file of several rasters: `openRaster(path, layer.name)` opens one of them. */
export interface MultiDatasetFile {
  path: string;
  kind: 'hdf4' | 'hdf5' | 'netcdf';
  subdatasets: Subdataset[];
  /** Attributes of the file. Those inside an HDF-EOS metadata block are listed one by one, such as RANGEBEGINNINGDATE. */
  metadata: Record<string, string>;
}

/** Colours of the codes 0 to 255 in the order of TIFF's ColorMap: all reds, then greens, then blues, each 0 to 65535. */
export type ColourTable = ArrayLike<number>;

/** Properties of a raster that are known before its pixels are read. Plain data, so that it can be sent to a worker thread. */
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
  /** Index of the alpha band. Pixels with the value 0 in this band hold no data. */
  alpha?: number;
  /**
   * An image of the same size, with a single band or with one band for each band of the raster. Pixels with the value 0 hold
   * no data.
   */
  mask?: RasterHeader;
  /** True if the values are indexes of a colour table. They are codes, which must not be averaged. */
  palette?: boolean;
  /** Colours of the indexes, if the values have 8 bits. */
  colours?: ColourTable | undefined;
  /**
   * If present, the file stores numbers of type `recoding.dataType`, and the reader returns `table[stored]`. `dataType` of the
   * header is then the type of the table.
   */
  recoding?: { dataType: 'uint8' | 'uint16'; table: Uint16Array };
  blocks: BlockLayout;
  bandTags: BandTags[];
  /** Metadata of the file: GDAL metadata items, HDF attributes, ENVI fields. */
  metadata: Record<string, string>;
  /** Assumptions that the reader made, in text for the user. */
  warnings?: string[];
  /** TIFF DateTime tag (306), as stored. */
  dateTime?: string | undefined;
  /** True if position or layout come from a header file or from the user instead of the file with the pixels. */
  isDescribedOutside?: true;
}

export type RasterShape = Pick<
  RasterHeader,
  'path' | 'fileBytes' | 'width' | 'height' | 'bands' | 'dataType'
>;

/** A raster that one reader decodes. */
export type HeaderOf<Blocks extends BlockLayout> = RasterHeader & { blocks: Blocks };

export interface Window {
  column: number;
  row: number;
  width: number;
  height: number;
}

export type Resampling = 'nearest' | 'bilinear';

/** Codes of the group `mask`. */
export const Mask = {
  nodata: 0,
  clear: 1,
  cloud: 2,
  shadow: 3,
  snow: 4,
  /** Estimated by a model. */
  estimated: 5,
  /** Clear on another date, of which the values are. */
  otherDate: 6,
  notAssessed: 255,
} as const;

/** A window of some bands of a raster, and its destination. */
export interface ReadRequest {
  header: RasterHeader;
  bands: number[];
  window: Window;
  target: ReadTarget;
}

/** Destination of the pixels of a window: the first pixel is written at `offset`, rows are `stride` pixels apart. */
export interface ReadTarget {
  /** One array for each band that is read. */
  arrays: PixelArray[];
  offset: number;
  stride: number;
}

/** Spectra of known materials. */
export interface SpectralLibrary {
  /** Centres of the bands, nm, in any order. */
  wavelengths: number[];
  spectra: { name: string; values: number[] }[];
  /** True if the values are known to be reflectance, 0 to 1; false if the file does not say so. */
  isScaled: boolean;
  /** An assumption about the file, in text for the user. */
  warning?: string;
}

/** A table in which several names, separated by blanks, have one value. */
export function aliasTable<T>(rows: [value: T, names: string][]): Record<string, T> {
  return Object.fromEntries(rows.flatMap(([value, names]) => names.split(' ').map((name) => [name, value])));
}
