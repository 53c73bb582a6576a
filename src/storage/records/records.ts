/** What the catalogue remembers. Plain JSON; times are milliseconds since 1970-01-01T00:00:00Z. */
import type { GridName, PixelSizes } from '../../grid/index.js';
import type { DataType, SpectralTags } from '../../raster/index.js';

/** The operations that make tiles. */
export const tileSources = [
  'raw',
  'split',
  'filled',
  'coalesced',
  'predicted',
  'cloud-free',
  'pca',
  'mnf',
  'anomaly',
  'match',
  'unmix',
  'classify',
  'indices',
  'smooth',
  'resample',
  'continuum',
  'cluster',
] as const;

export type TileSource = (typeof tileSources)[number];

export interface CollectionRecord {
  id: string;
  title: string;
  grid: GridName;
  precision: number;
  /** Of the scenes so far. Collections made by older versions have none until their next scene. */
  pixelSizes?: PixelSizes;
  /** SPDX identifier, or `proprietary`, `various`. */
  license: string;
  licenseUrl?: string;
  /** What who shows the data must say. `[year]` in it stands for the year that the data is of. */
  attribution?: string;
  /** Who made, processed or hosts the data, as a STAC Collection says it. */
  providers?: { name: string; roles?: string[]; url?: string }[];
  createdAt: number;
}

export interface SceneRecord {
  id: string;
  collection: string;
  /** Version of all its tiles. */
  version: string;
  /** Digest of the input pixels and of every option that shapes the tiles; equal fingerprints make equal tiles. */
  fingerprint: string;
  start: number;
  end: number;
  platform: string | null;
  geocodes: string[];
  warnings: string[];
  committedAt: number;
}

export interface BandRecord extends SpectralTags {
  name: string;
  /** STAC eo common name: red, green, blue, nir, swir16 ... */
  commonName?: string;
  /** Physical value = stored * scale + offset. */
  scale: number;
  offset: number;
  /** The classes that its codes stand for, if they are known. */
  classes?: ClassRecord[];
  /** Percent of the cell's pixels that hold data in this band. */
  validPercent: number;
}

export interface ClassRecord {
  value: number;
  name: string;
  /** RRGGBB. */
  colour: string;
}

/** One file of a tile. The group `mask` has role `mask` and one band. */
export interface GroupRecord {
  name: string;
  role: 'data' | 'qa' | 'mask';
  dataType: DataType;
  width: number;
  height: number;
  nodata: number | null;
  /** True where the values of a `data` group are codes, which must not be averaged. */
  codes?: true;
  bands: BandRecord[];
  bytes: number;
  crc32: number;
}

export interface TileRecord {
  id: string;
  collection: string;
  scene: string;
  grid: GridName;
  geocode: string;
  version: string;
  source: TileSource;
  start: number;
  end: number;
  platform: string | null;
  /** Percent, 0-100. */
  coverage: number;
  /** Percent, 0-100; null where nothing could assess it. */
  cloudCover: number | null;
  groups: GroupRecord[];
  /** Outline of the valid pixels in grid coordinates, closed ring. */
  footprint: [x: number, y: number][];
  derivedFrom: string[];
  /**
   * Of a tile made from others: digest of the ids and versions of all inputs that it was offered, also of those that gave no pixel.
   * Whoever makes such tiles defines it (`digestOfInputs` in `src/wrangle`). Raw tiles have none, and neither do tiles that
   * older versions of the program made.
   */
  inputsDigest?: string;
  /** The version under which the tile was made, if `node join` has copied it to a cluster and given it another one. */
  madeAs?: string;
  /** The trained model that made it. Of tiles without one, and of those that older versions of the program made, absent. */
  model?: { id: string; version: string };
  createdAt: number;
}

/** What a place looks like, by one of its images. */
export interface TextureRecord {
  collection: string;
  grid: GridName;
  geocode: string;
  /** The tile that was looked at. */
  tile: string;
  version: string;
  start: number;
  /** As `src/training/transfer` names them. */
  values: number[];
}

/** The places of a collection in clusters of those that look alike. Which one a place is in follows from its texture. */
export interface ClusteringRecord {
  collection: string;
  /** Standardised value = (value - mean) / deviation. */
  scaling: { means: number[]; deviations: number[] };
  /** In standardised values, of the largest cluster first. */
  centres: number[][];
  /** Mean silhouettes of other numbers of clusters, by three distances. Empty where the number was given. */
  curve: { clusters: number; euclidean: number; manhattan: number; cosine: number }[];
  seed: number;
  /** How many textures it was made of. */
  places: number;
  createdAt: number;
}

export type JobStatus = 'accepted' | 'running' | 'successful' | 'failed' | 'dismissed';

export interface JobRecord {
  id: string;
  process: string;
  status: JobStatus;
  created: number;
  /** When it first ran, even if it was stopped and ran again. */
  started?: number;
  /** When its current run began, if it ran before. */
  resumed?: number;
  finished?: number;
  updated: number;
  tiles: { total: number; done: number; failed: number; skipped: number };
  /** How much of the work is done, 0 to 1, where the work tells it otherwise than by tiles. */
  share?: number;
  message: string;
  inputs: unknown;
  /** Which outputs the results have, and whether they are sent as they are; absent for a document with all of them. */
  resultOptions?: { outputs?: string[]; raw?: boolean };
  /** What the work gets, where it must know more than who asked for it. */
  given?: unknown;
  /** Of a job that was cancelled or has failed: what it had made until then. */
  results?: unknown;
  error?: { code: string; message: string };
  /** Number of the newest line of its log that belongs to this record. */
  lines?: number;
  /** The next process that opens the folder to work takes the job up again. */
  resumable?: boolean;
  /** How often in a row the process died while the job ran. */
  crashes?: number;
  /** Names of scratch folders with files that were sent for it; they go when it has ended. */
  uploads?: string[];
  /** Objects of the shared store in which files of the results are, by their names. */
  files?: Record<string, string>;
  /** The job whose failed inputs this one does again, and the newest one that does those of this. */
  retryOf?: string;
  retriedBy?: string;
}

export type LogLevel = 'info' | 'warning' | 'error';

/** One line of a job's log. */
export interface LogRecord {
  time: number;
  level: LogLevel;
  text: string;
  /** Set where the line tells that the job has come into this state. */
  status?: JobStatus;
}

/** What a folder holds of a cluster. */
export interface ReplicaRecord {
  /** Id of the cluster. */
  cluster: string;
  /** Number of the last commit that it holds. */
  applied: number;
  /** Which restoration of the coordination store the number is of; absent where there was none. */
  restored?: string;
  /** The slots whose tiles are here as of that commit, as text of `src/dht`. */
  slots: string;
}

/** A request that must not start a second job: the job it has started, and a digest of what it asked for. */
export interface RequestRecord {
  job: string;
  digest: string;
  since: number;
}

/** How good a version of a model is. Errors on other data do not compare. */
export interface ModelScore {
  /** The less, the better. */
  error: number;
  /** The same for the same validation data. */
  data: string;
}

export interface ModelFile {
  name: string;
  bytes: number;
  crc32: number;
}

/** What one training has made; its weights and card are files under `models/`. */
export interface TrainedVersion {
  version: string;
  createdAt: number;
  /** Weights and card as they lie in the version's folder. */
  files: ModelFile[];
  /** What lists say of it; the whole card is a file beside the weights. */
  card: unknown;
  /** Older versions of the program wrote none. */
  score?: ModelScore;
}

/** One version of a model. */
export interface ModelVersionRecord extends TrainedVersion {
  /** `<model>_<collection>_<g or q><geocode>` */
  id: string;
  model: string;
  collection: string;
  grid: GridName;
  geocode: string;
}

/** A model: its latest version, and those before it that are kept. */
export interface ModelRecord extends ModelVersionRecord {
  /** The latest of them first. Absent where the record is of an older version of the program, which kept none. */
  former?: TrainedVersion[];
}
