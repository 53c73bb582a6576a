/**
 * A scene as its format describes it, before any pixel is read. Plain data: parts of it are sent to worker threads. Also the
 * interface of product formats, and the options of an ingest.
 */

import { createHash } from 'node:crypto';
import { basename, extname } from 'node:path';
import type { Bbox, GridName, PixelSize } from '../grid/index.js';
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
   * The detector of the band, for spectrometers that write 0 for unseen pixels although 0 is also a measured value. A pixel
   * that is 0 in all good bands of a detector holds no data in its bands, see `cut/cube.ts`.
   */
  detector?: string;
}

/** Bands of one pixel size, data type and role, with the same georeferencing. */
export interface SourceGroup {
  name: string;
  role: 'data' | 'qa';
  /** Nearest for codes and classes, bilinear for measurements. */
  resampling: Resampling;
  /** Nominal, so that it is the same for all scenes of a product. */
  resolution: Resolution;
  /** Stored value that means "no data"; null if every value is data. */
  nodata: number | null;
  bands: SourceBand[];
  /**
   * Suffix of the group's name. It separates the bands from others of the same size and role, whose groups keep their names.
   */
  part?: string;
  /** Colours of the codes, for a group of one band. */
  colours?: ColourTable;
}

/** A band with quality codes: `codes[stored value]` is a mask code, or 255 if the value gives no information. */
export interface QualityBand {
  group: string;
  /** Index within the group. */
  band: number;
  codes: Uint8Array;
}

/** Properties that a product defines for its collection. "[year]" in the attribution stands for the year of the scene. */
export type SceneCollection = Omit<NewCollection, 'grid' | 'precision'>;

export interface Scene {
  /** The file or folder of the scene, for messages. */
  path: string;
  id: string;
  collection: SceneCollection;
  platform: string | null;
  /** Milliseconds since 1970. */
  start: number;
  end: number;
  groups: SourceGroup[];
  /** The product's own mask: the first of these bands that has information on a pixel decides. Empty if there is none. */
  quality: QualityBand[];
  /** True if cloud may be detected by reflectance, because the product has no mask. */
  reflectanceTest?: boolean;
  /** Degrees clockwise from north; NaN or absent if it is unknown. */
  sunAzimuth?: number;
  warnings: string[];
  /** Address of the archive's Item, or of the file, for a scene that was fetched. */
  via?: string;
  /** Facts that `--name-pattern` read from the names of the files. */
  names?: FileNameFacts[];
}

/** Facts in the name of a file. */
export interface FileNameFacts {
  /** The name, without folder. */
  file: string;
  /** In the form of --datetime. */
  time?: string;
  band?: string;
  tile?: string;
  platform?: string;
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

/** Properties that the user gives for a raster that lacks them. Bands count from 1. */
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
  /** Name of the array, for a file that holds several. */
  layer?: string;
  /** `EPSG:CODE,ULX,ULY,LRX,LRY`: system, and outer corners of the upper left and the lower right pixel. */
  position?: string;
  /** Wavelengths in nm: one for each band, or the first and the last if the bands are evenly spaced. */
  wavelengths?: number[];
  /** Pattern of file names: which part is which fact. */
  namePattern?: string;
}

/** An input whose product is not known yet. Formats check its content, and names only if the content does not identify it. */
export interface InputProbe {
  path: string;
  /** Type by the first bytes of a file; null for a folder and for an unknown type. */
  fileType: FileType | null;
  /** Names of the entries of a folder, sorted; those of subfolders end in "/". Null for a file. */
  entries: string[] | null;
  /** The header of a raster file, and the layers of a file with several. Both are read once and cached. */
  header: () => Promise<RasterHeader>;
  subdatasets: () => Promise<MultiDatasetFile>;
}

/** A product format. To add one, add a file in `formats/` and a line in `FORMATS` of `formats/registry.ts`. */
export interface ProductFormat {
  /** Name for messages, such as "Sentinel-2 SAFE". */
  name: string;
  /**
   * True if the input is this product, even if it is incomplete. Must be cheap: it may list folders and read headers, but no
   * pixels.
   */
  identify(candidate: InputProbe): Promise<boolean>;
  /**
   * The scenes of the input: one, unless the file has a time axis or the folder several scenes. Throws if the product is
   * damaged; the message names the file and a remedy.
   */
  describe(candidate: InputProbe, options: DescribeOptions): Promise<Scene[]>;
}

/** Options of an ingest. Plain JSON. */
export interface IngestOptions extends Omit<DescribeOptions, 'nodata'> {
  /** JSON has no NaN. */
  nodata?: number | 'nan';
  grid?: GridName;
  precision?: number;
  /** Region in degrees. Only its cells are made, each as a whole. West > east crosses the antimeridian. */
  bbox?: Bbox;
  /** Only lists the tiles that would be made. */
  dryRun?: boolean;
  /** Compression of the blocks of cubes; none by default. */
  compress?: 'deflate';
  /** Detects cloud by reflectance if the product has no mask. */
  cloudTest?: boolean;
}

export interface IngestHooks {
  /** The id of the job. It replaces no delivery of a job that was accepted later. */
  job?: string;
  signal?: AbortSignal;
  /** Called with the number of cells of the scene before it is cut. */
  onCells?(total: number): void;
  /** Called repeatedly with the completed fraction: 0 to 1. */
  onProgress?(share: number): void;
  /** Called with the number of cells that hold data. */
  onTiles?(tiles: number): void;
  /** Called when all pixels are read, before the commit. An error fails the scene. */
  onRead?(): Promise<void>;
}

/** The name of a file as the id of its scene. */
export const stemOf = (name: string) => basename(name, extname(name));

/** A file name as an id. If characters were replaced, a digest keeps different names different. */
export function slugify(name: string): string {
  const clean = name
    .replace(/[^A-Za-z0-9._-]+/g, '-')
    .replace(/^[^A-Za-z0-9]+/, '')
    .slice(0, 80);
  if (clean === name) return name;
  return `${clean || 'scene'}-${createHash('sha256').update(name).digest('hex').slice(0, 8)}`;
}
