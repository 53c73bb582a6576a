/** A scene as its format describes it, before any pixel is read. Plain data: parts of it are sent to worker threads. */
import type { PixelSize } from '../grid/index.js';
import type {
  ColourTable,
  FileType,
  MultiDatasetFile,
  RasterHeader,
  Resampling,
  SpectralTags,
} from '../raster/index.js';
import type { NewCollection } from '../storage/index.js';

/** Pixel size on the ground in metres, along columns and rows. */
export type Resolution = PixelSize;

export interface SourceBand extends SpectralTags {
  name: string;
  /** STAC eo common name: red, green, blue, nir, swir16 ... */
  commonName?: string;
  header: RasterHeader;
  /** Index of the band within its file, from 0. */
  index: number;
  /** Physical value = stored * scale + offset. */
  scale: number;
  offset: number;
  /**
   * For spectrometers that leave 0 where they saw nothing, which is a measured value as well: the detector of the band. A pixel that is 0 in
   * all good bands of a detector holds no data in its bands, see `unseen-pixels.ts`.
   */
  detector?: string;
}

/** Bands of one pixel size, data type and role; they share one position. */
export interface SourceGroup {
  name: string;
  role: 'data' | 'qa';
  /** Nearest for codes and classes, bilinear for measurements. */
  resampling: Resampling;
  /** Nominal, so that it is the same for all scenes of a product. */
  resolution: Resolution;
  /** Stored value that means "no data", null where every value is data. */
  nodata: number | null;
  bands: SourceBand[];
  /** Part of the group's name. It keeps the bands apart from others of the same size and role, whose groups keep their names. */
  part?: string;
  /** Of the codes of a group of one band. */
  colours?: ColourTable;
}

/** A band with quality codes: `codes[stored value]` is a mask code, 255 where the value says nothing. */
export interface QualityBand {
  group: string;
  /** Index within the group. */
  band: number;
  codes: Uint8Array;
}

/** What a product says of its collection. "[year]" in the attribution stands for the year of the scene. */
export type SceneCollection = Omit<NewCollection, 'grid' | 'precision'>;

export interface Scene {
  /** The file or folder it was read from, for messages. */
  path: string;
  id: string;
  collection: SceneCollection;
  platform: string | null;
  /** Milliseconds since 1970. */
  start: number;
  end: number;
  groups: SourceGroup[];
  /** The product's own mask: for each pixel the first of these bands that says something counts. Empty where it has none. */
  quality: QualityBand[];
  /** Where the product has no mask of its own: whether its reflectance may be tested for cloud. */
  reflectanceTest: boolean;
  warnings: string[];
}

/** The files that hold the pixels of a scene, each once. */
export function sourceFiles({ groups }: Scene): string[] {
  const bands = groups.flatMap((group) => group.bands);
  return [
    ...new Set(bands.flatMap(({ header }) => [header.path, ...(header.mask ? [header.mask.path] : [])])),
  ];
}

/** The finest data group: it sets the default precision and the size of the mask. */
export function referenceGroup({ groups }: Scene): SourceGroup {
  return groups.find(({ role }) => role === 'data') ?? groups[0];
}

/** Throws an Error if the scene has no group of this name. */
export function requireGroup({ groups }: Scene, name: string): SourceGroup {
  const group = groups.find((one) => one.name === name);
  if (!group) throw new Error(`the scene has no group ${name}`);
  return group;
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
  /** Name of the array of a file that holds several. */
  layer?: string;
  /** `EPSG:CODE,ULX,ULY,LRX,LRY`: system, and outer corners of the upper left and the lower right pixel. */
  position?: string;
  /** Wavelengths in nm: one for each band, or the first and the last if the bands are evenly spaced. */
  wavelengths?: number[];
}

/** An input before it is known what product it is. Formats look at its content, and at names where nothing inside says it. */
export interface InputProbe {
  path: string;
  /** What the first bytes of a file say; null for a folder and for what no one knows. */
  fileType: FileType | null;
  /** For a folder: the names in it, sorted; a subfolder's name ends in "/". Null for a file. */
  entries: string[] | null;
  /** The header of a raster file, and what a file of several rasters holds: opened once, however many ask. */
  header: () => Promise<RasterHeader>;
  subdatasets: () => Promise<MultiDatasetFile>;
}

/** One file a product. A new product is one new file in `formats/` and its line in `formats/index.ts`. */
export interface ProductFormat {
  /** For messages: "Sentinel-2 SAFE". */
  name: string;
  /** Whether the input is this product, whole or broken. Cheap: it may list folders and read headers, no pixels. */
  identify(candidate: InputProbe): Promise<boolean>;
  /**
   * The scenes of the input: one, unless the file has an axis of time or the folder several scenes. Throws where the product is broken, naming the file
   * and what to do.
   */
  describe(candidate: InputProbe, options: DescribeOptions): Promise<Scene[]>;
}
