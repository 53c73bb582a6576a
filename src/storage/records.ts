/** Types of the catalogue's records, and the deliveries of a scene. Plain JSON; times are milliseconds since 1970-01-01T00:00:00Z. */
import type { Bbox, GridName, PixelSizes } from '../grid/index.js';
import type { DataType, SpectralTags } from '../raster/index.js';

/** Operations that make tiles. */
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
  /** Pixel sizes of all scenes so far. Collections made by older versions have none until their next scene. */
  pixelSizes?: PixelSizes;
  /** SPDX identifier, or `proprietary`, `various`. */
  license: string;
  licenseUrl?: string;
  /** Credit line to show with the data. `[year]` in it stands for the year of the data. */
  attribution?: string;
  /** Organisations that made, processed or host the data, in the form of a STAC Collection. */
  providers?: { name: string; roles?: string[]; url?: string }[];
  createdAt: number;
}

/** The tiles of a scene that were committed together. */
export interface SceneDelivery {
  version: string;
  /** Digest of the input pixels and of every option that affects the tiles; equal fingerprints make equal tiles. */
  fingerprint: string;
  geocodes: string[];
}

/** `version` and `fingerprint` are those of the latest delivery, `geocodes` the cells of all its tiles. */
export interface SceneRecord extends SceneDelivery {
  id: string;
  collection: string;
  /** Regions whose cells the deliveries of this fingerprint have made. Absent if the whole scene was ingested. */
  regions?: Bbox[];
  /** Digest of the bands of the local files; options do not change it. */
  files?: string;
  /** Digest of the remote STAC Item and the options of the latest delivery, by which the Item is skipped without a request. */
  item?: string;
  /** The job of the latest delivery. */
  job?: string;
  /** The tiles that other nodes have made for the latest delivery, and those that later deliveries, of other regions, have kept. */
  earlier?: SceneDelivery[];
  start: number;
  end: number;
  platform: string | null;
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
  /** Classes of the codes, if they are known. */
  classes?: ClassRecord[];
  /** Percent of the cell's pixels that have data in this band. */
  validPercent: number;
}

export interface ClassRecord {
  value: number;
  name: string;
  /** RRGGBB. */
  colour: string;
}

/**
 * Bands of one type and pixel size: an image in a file of the tile. Groups of one pixel size share a file, in the order of the record; the
 * mask is in that of the finest data group. The group `mask` has role `mask` and one band.
 */
export interface GroupRecord {
  name: string;
  /** Name of the file without `.tif`. */
  file: string;
  role: 'data' | 'qa' | 'mask';
  dataType: DataType;
  width: number;
  height: number;
  nodata: number | null;
  /** True if the values of a `data` group are codes, which must not be averaged. */
  codes?: true;
  bands: BandRecord[];
  /** Size and checksum of the image in the file. */
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
  /** Percent of the assessed pixels, 0-100; null if no pixel is assessed. */
  cloudCover: number | null;
  /** Percent of the pixels with data that a model has estimated, and that are of other dates. Absent if there are none. */
  estimated?: number;
  otherDates?: number;
  groups: GroupRecord[];
  /** Warnings about the tile itself, such as an offset in doubt, and those of the tiles that it is made from; see `tileWarnings`. */
  warnings?: string[];
  /** Closed ring around the pixels with data, in grid coordinates. */
  footprint: [x: number, y: number][];
  /** The 8 x 8 parts of the cell in which the tile holds data (`partsWithData`). Absent if it holds data in all of them. */
  dataParts?: string;
  derivedFrom: string[];
  /**
   * For a derived tile: digest of the ids and versions of all its candidate inputs, including those that contributed no pixel. The
   * code that makes such tiles defines it (`digestOfInputs` in `src/derive`). Raw tiles, and tiles made by older versions of
   * the program, have none.
   */
  inputsDigest?: string;
  /** The original version of the tile, if `node join` has copied it to a cluster under another one. */
  madeAs?: string;
  /**
   * The trained model that made the tile. Absent without a model, and for tiles made by older versions of the program. `halo` marks a
   * tile that was made while some of its neighbours could not be found.
   */
  model?: { id: string; version: string; halo?: 'partial' };
  /** Address of the archive's Item, or of the file, that the scene was fetched from. Absent for scenes from the disk. */
  via?: string;
  createdAt: number;
}

/** Number of warnings of a tile. */
const MAX_TILE_WARNINGS = 20;
const MAX_WARNING_LENGTH = 500;

/** The warnings of a tile: each text once, the first of many, long ones shortened. */
export function tileWarnings(texts: Iterable<string>): Pick<TileRecord, 'warnings'> {
  const short = Array.from(texts, (text) =>
    text.length > MAX_WARNING_LENGTH ? `${text.slice(0, MAX_WARNING_LENGTH - 1)}…` : text,
  );
  const different = [...new Set(short)];
  if (different.length === 0) return {};
  const more = different.length - MAX_TILE_WARNINGS;
  const warnings =
    more > 0 ? [...different.slice(0, MAX_TILE_WARNINGS - 1), `${more + 1} more warnings`] : different;
  return { warnings };
}

/** The texture of a site, computed from one of its images. */
export interface TextureRecord {
  collection: string;
  grid: GridName;
  geocode: string;
  /** The tile that it was computed from. */
  tile: string;
  version: string;
  start: number;
  /** Descriptors, in the order that `src/training/texture` defines. */
  values: number[];
}

/** Clusters of sites of a collection with similar textures. The texture of a site determines its cluster. */
export interface ClusteringRecord {
  collection: string;
  /** Standardised value = (value - mean) / deviation. */
  scaling: { means: number[]; deviations: number[] };
  /** Cluster centres in standardised values, the largest cluster first. */
  centres: number[][];
  /** Mean silhouettes for other numbers of clusters, by three distances. Empty if the number was given. */
  curve: { clusters: number; euclidean: number; manhattan: number; cosine: number }[];
  seed: number;
  /** Number of textures that it was computed from. */
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
  /** Progress from 0 to 1, if the work does not report it as tiles. */
  share?: number;
  message: string;
  /** The first warnings of its log. */
  warnings?: string[];
  inputs: unknown;
  /** Requested outputs of the results, and `raw` if they are sent without a document; absent for a document with all of them. */
  resultOptions?: { outputs?: string[]; raw?: boolean };
  /** Additional input of the work that the client did not send. */
  given?: unknown;
  /** Results; for a cancelled or failed job, those so far. */
  results?: unknown;
  error?: { code: string; message: string };
  /** Number of the newest line of its log that belongs to this record. */
  lines?: number;
  /** True if the next process that opens the folder for work resumes the job. */
  resumable?: boolean;
  /** Number of consecutive times that the process died while the job ran. */
  crashes?: number;
  /** Names of scratch folders with uploaded files. They are removed when the job has ended. */
  uploads?: string[];
  /** Objects of the object store with the files of the results, by file name. */
  files?: Record<string, string>;
  /** The job whose failed inputs this job retries, and the newest job that retries the failed inputs of this job. */
  retryOf?: string;
  retriedBy?: string;
}

/** The parts of the record of a job that can be long. Its state and its progress change without them. */
export const JOB_DETAILS = ['inputs', 'given', 'results', 'files', 'warnings', 'resultOptions'] as const;
export type JobDetails = Pick<JobRecord, (typeof JOB_DETAILS)[number]>;

/** The rest of the record, as lists of jobs have it. */
export interface JobSummary extends Omit<JobRecord, keyof JobDetails> {
  hasResults?: true;
}

export function jobSummaryOf(record: JobRecord): JobSummary {
  const isDetail = (name: string) => (JOB_DETAILS as readonly string[]).includes(name);
  const rest = Object.fromEntries(Object.entries(record).filter(([name]) => !isDetail(name)));
  return { ...(rest as JobSummary), ...(record.results !== undefined && { hasResults: true }) };
}

/** A record without its details; null stands for results. */
export const jobRecordOf = ({ hasResults, ...rest }: JobSummary): JobRecord => ({
  ...rest,
  inputs: undefined,
  ...(hasResults && { results: null }),
});

export type LogLevel = 'info' | 'warning' | 'error';

/** One line of a job's log. */
export interface LogRecord {
  time: number;
  level: LogLevel;
  text: string;
  /** Set if the line reports that the job has entered this state. */
  status?: JobStatus;
}

/** The part of a cluster that a folder has. */
export interface ReplicaRecord {
  /** Id of the cluster. */
  cluster: string;
  /** Number of the last applied commit. */
  applied: number;
  /** The restoration of the coordination store that the number belongs to; absent if there was none. */
  restored?: string;
  /** The slots whose tiles the folder has as of that commit, as text of `src/dht`. */
  slots: string;
  /** Slots of which the folder has other tiles, or not all, as text; absent if there are none. */
  outdated?: string;
}

/** A request that must not start a second job: the job that it has started, and a digest of its content. */
export interface RequestRecord {
  job: string;
  digest: string;
  since: number;
}

/** Quality of a version of a model. Errors on different data cannot be compared. */
export interface ModelScore {
  /** Error on the data by which versions are chosen; smaller is better. */
  error: number;
  /** Identifies these data. */
  data: string;
}

export interface ModelFile {
  name: string;
  bytes: number;
  crc32: number;
}

/** The result of one training; its weights and card are files below `models/`. */
export interface TrainedVersion {
  version: string;
  createdAt: number;
  /** Weights and card in the version's folder. */
  files: ModelFile[];
  /** Summary for lists; the complete card is a file beside the weights. */
  card: unknown;
  /** Absent in records of older versions of the program, and without data to choose by. */
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

/** A model: its latest version, and the kept ones before it. */
export interface ModelRecord extends ModelVersionRecord {
  /** The latest of them first. Absent in records of older versions of the program, which kept none. */
  former?: TrainedVersion[];
}

/**
 * Returns the deliveries that have tiles, the latest one first. Tiles of a scene have different versions if its regions were ingested one
 * after another; each cell of the scene is in one delivery.
 */
function sceneDeliveries({ version, fingerprint, geocodes, earlier = [] }: SceneRecord): SceneDelivery[] {
  if (earlier.length === 0) return [{ version, fingerprint, geocodes }];
  const kept = new Set(earlier.flatMap((delivery) => delivery.geocodes));
  const latest = { version, fingerprint, geocodes: geocodes.filter((cell) => !kept.has(cell)) };
  // Other nodes may have made all of its tiles.
  return latest.geocodes.length > 0 ? [latest, ...earlier] : earlier;
}

/** Returns the version of each tile of a scene by geocode. */
export function tileVersions(scene: SceneRecord): Map<string, string> {
  const deliveries = sceneDeliveries(scene);
  return new Map(deliveries.flatMap(({ version, geocodes }) => geocodes.map((cell) => [cell, version])));
}

/** Returns the cells whose tiles deliveries of this fingerprint have made. */
export function cellsOfFingerprint(scene: SceneRecord, fingerprint: string): string[] {
  return sceneDeliveries(scene).flatMap((one) => (one.fingerprint === fingerprint ? one.geocodes : []));
}

/** Returns the deliveries of a scene without the tiles that `keep` does not select. */
export function keptDeliveries(scene: SceneRecord, keep: (geocode: string) => boolean): SceneDelivery[] {
  return sceneDeliveries(scene)
    .map((one) => ({ ...one, geocodes: one.geocodes.filter(keep) }))
    .filter(({ geocodes }) => geocodes.length > 0);
}

/**
 * Returns a scene without the tile of a cell, or null if it was the last tile. The delivery of the tile loses its fingerprint, so that the
 * same delivery restores the tile.
 */
export function withoutTile(scene: SceneRecord, geocode: string): SceneRecord | null {
  const without = ({ geocodes }: SceneDelivery) => geocodes.filter((cell) => cell !== geocode);
  const geocodes = without(scene);
  if (geocodes.length === 0) return null;
  // Without the digest of its Item, a remote scene is read again.
  const { earlier, item: _, ...others } = scene;
  if (!earlier?.some((one) => one.geocodes.includes(geocode)))
    return { ...others, fingerprint: '', geocodes, ...(earlier && { earlier }) };
  const left = earlier.map((one) =>
    one.geocodes.includes(geocode) ? { ...one, fingerprint: '', geocodes: without(one) } : one,
  );
  // A region that was read is then without one of its tiles.
  return { ...others, geocodes, regions: [], earlier: left.filter((one) => one.geocodes.length > 0) };
}
