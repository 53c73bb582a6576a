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
  /**
   * Up to how far positions may be off, because a single shift brings the whole area to WGS 84, without grids; Infinity if that
   * is not known: `proj4` has a shift of unknown accuracy, or none, and the datum is taken as WGS 84. Undefined for datums that
   * are equal to it within a few metres.
   */
  datumErrorMetres?: number;
}

/** The size of the pieces in which a raster is stored; a piece is decoded as a whole. */
interface BlockSize {
  width: number;
  height: number;
}

/** How a TIFF's pixels lie in the file. Strips are blocks as wide as the image. */
export interface TiffBlocks extends BlockSize {
  reader: 'tiff';
  /** True where each band has blocks of its own (PlanarConfiguration 2). */
  planar: boolean;
  compression: number;
  predictor: number;
  offsets: ArrayLike<number>;
  byteCounts: ArrayLike<number>;
  littleEndian: boolean;
  /** Number of the image's directory in the file, from 0. */
  directory: number;
  /** Set for masks of one bit a pixel, which are read as 0 and 1. */
  bits?: 1;
  /** Tables that all JPEG blocks share, and whether their colours are brightness and two differences from it. */
  jpeg?: { tables?: Uint8Array; isYcbcr: boolean };
  /** How LERC blobs are compressed further: 0 not, 1 deflate, 2 Zstandard. */
  lerc?: number;
}

/** Pixels that GDAL decodes, as a process of its own: JPEG 2000, HDF4, Erdas Imagine. */
export interface GdalBlocks extends BlockSize {
  reader: 'gdal';
  /** Short name of the only driver that may open it, such as JP2OpenJPEG. */
  driver: string;
  /** What GDAL opens: the file's path, or the name of one of its layers. */
  dataset: string;
}

/** Stored numbers that stand for missing data, besides the nodata value and NaN: these, and all below `min` or above `max`. */
export interface MissingNumbers {
  fills: number[];
  min: number;
  max: number;
}

/** A dataset of an HDF5 or netCDF-4 file. Its last two dimensions are rows and columns; those before them count bands. */
export interface Hdf5Blocks extends BlockSize {
  reader: 'hdf5';
  /** Path within the file. */
  dataset: string;
  /** True where the first stored row is the southernmost; rows are then turned round as they are read. */
  bottomUp: boolean;
  /** Read as the raster's nodata value. */
  missing?: MissingNumbers;
}

/**
 * A cube of an HDF5 or netCDF-4 file whose bands lie within its rows or its pixels, as imaging spectrometers deliver them. Its grid
 * may be a swath: then a lookup table says which pixel of the swath each pixel of the raster shows.
 */
export interface Hdf5CubeBlocks extends BlockSize {
  reader: 'hdf5-cube';
  /** Path within the file. */
  dataset: string;
  /** The dimension that counts bands: 1 of (rows, bands, columns), 2 of (rows, columns, bands). */
  bandAxis: 1 | 2;
  /** Sizes of the dataset's dimensions. */
  shape: [number, number, number];
  /** Stored value of a pixel without data; like NaN it is read as the raster's nodata value. */
  fill?: number;
  /** Missing data by the attributes of the dataset; read as the raster's nodata value. */
  missing?: MissingNumbers;
  /** Two datasets of the raster's size: column and row in the swath, counted from 1, 0 where there is none; signs do not count. */
  lookup?: { columns: string; rows: string };
  /** A dataset of the cube's shape; where a value has one of these bits, the cube holds no data. */
  errors?: { dataset: string; bits: number };
}

/** Number formats that a raw image can hold beside `DataType`: they are read as float64. */
export type StoredType = DataType | 'int64' | 'uint64';

/** An image of bare numbers that an ENVI header describes. A block is one row. */
export interface EnviBlocks extends BlockSize {
  reader: 'envi';
  /** Band by band, or in each row band by band, or in each pixel band by band. */
  interleave: 'bsq' | 'bil' | 'bip';
  /** Bytes before the first pixel. */
  headerOffset: number;
  storedType: StoredType;
  littleEndian: boolean;
}

/** An array of rows x columns x bands in a MATLAB file, stored column by column. A block is one row. */
export interface MatBlocks extends BlockSize {
  reader: 'mat';
  storedType: StoredType;
  /** Where the bytes of the array's element begin in the file, and how many there are. */
  start: number;
  bytes: number;
  /** Whether zlib compressed the element. */
  isCompressed: boolean;
  /** Where the numbers begin in the decompressed element. */
  dataOffset: number;
  littleEndian: boolean;
}

/** Which reader decodes a raster, and what it needs to know. */
export type BlockLayout = TiffBlocks | GdalBlocks | Hdf5Blocks | Hdf5CubeBlocks | EnviBlocks | MatBlocks;

/** Spectral properties of a band of an imaging spectrometer. */
export interface SpectralTags {
  /** Centre, nm. */
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
  /** Its name in the file, such as Maximum_Snow_Extent or /HDFEOS/GRIDS/VNP_Grid_500m_2D/Data Fields/SurfReflect_I1. */
  name: string;
  /** For people. */
  description: string;
  /** Sizes of its dimensions; the last two are rows and columns. */
  shape: number[];
}

/** A file of several rasters: `openRaster(path, layer.name)` opens one of them. */
export interface MultiDatasetFile {
  path: string;
  kind: 'hdf4' | 'hdf5' | 'netcdf';
  subdatasets: Subdataset[];
  /** Attributes of the file, and those of HDF-EOS metadata by their names (RANGEBEGINNINGDATE ...). */
  metadata: Record<string, string>;
}

/** Colours of the codes 0 to 255 as TIFF's ColorMap has them: all reds, then greens, then blues, each 0 to 65535. */
export type ColourTable = ArrayLike<number>;

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
  /** Index of the band that says how opaque a pixel is; a pixel of 0 holds no data. */
  alpha?: number;
  /** An image of the same size that says which pixels hold data: those that are not 0. It has one band, or one for each band. */
  mask?: RasterHeader;
  /** True where the values are indexes of a colour table: codes, which must not be averaged. */
  palette: boolean;
  /** Their colours, where the values have 8 bits. */
  colours?: ColourTable | undefined;
  /** If present, stored numbers of type `recoding.dataType` are read as `table[stored]`; the header's own type is that of the table. */
  recoding?: { dataType: 'uint8' | 'uint16'; table: Uint16Array };
  blocks: BlockLayout;
  bandTags: BandTags[];
  /** Metadata of the file as a whole: GDAL metadata items, HDF attributes, ENVI fields. */
  metadata: Record<string, string>;
  /** Guesses that were made while the file was read, for the user. */
  warnings?: string[];
  /** TIFF DateTime tag (306), as stored. */
  dateTime: string | undefined;
  /** True if a header file or the user said where or how the pixels lie, and not the file that holds them. */
  isDescribedOutside?: true;
}

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
  /** Not seen at this date: a model or other dates say what is below the cloud. */
  filled: 5,
  notAssessed: 255,
} as const;

/** A window of some bands of a raster, and where it goes. */
export interface ReadRequest {
  header: RasterHeader;
  bands: number[];
  window: Window;
  target: ReadTarget;
}

/** Where the pixels of a window go: its first pixel to `offset`, its rows `stride` pixels apart. */
export interface ReadTarget {
  /** One for each band that is read. */
  arrays: PixelArray[];
  offset: number;
  stride: number;
}

/** Spectra of known materials. */
export interface SpectralLibrary {
  /** Centres of the bands, nm, in any order. */
  wavelengths: number[];
  spectra: { name: string; values: number[] }[];
  /** Whether the values are known to be in the unit of reflectance, 0 to 1; otherwise the file does not tell. */
  isScaled: boolean;
  /** A guess about the file, for the user. */
  warning?: string;
}
