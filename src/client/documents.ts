/** JSON documents that the API takes and returns. */
import type { FilterParams } from '../query/index.js';

export interface SearchRequest extends FilterParams {
  /** `-eo:cloud_cover,datetime`; newest first where absent. */
  sortby?: string;
  limit?: number;
  token?: string;
}

/** Of an answer that lacks tiles: the slots for which no node of the cluster answers. */
export interface PartialDocument {
  partial?: boolean;
  unansweredSlots?: number[];
}

export interface ItemCollection extends PartialDocument {
  type: 'FeatureCollection';
  features: { id: string; [member: string]: unknown }[];
  numberMatched: number;
  numberReturned: number;
  links: { rel: string; href: string; body?: { token?: string } }[];
}

export interface SeriesRequest extends FilterParams {
  /** A GeoJSON Point, Polygon or MultiPolygon in degrees. */
  geometry: object;
  expression: string;
}

/** One date of a series. A point has a value, a polygon has statistics; null where no pixel is valid. */
export interface SeriesEntry {
  /** As in RFC 3339. */
  datetime: string;
  end_datetime?: string;
  collection: string;
  scenes: string[];
  value?: number | null;
  mean?: number | null;
  std?: number | null;
  min?: number | null;
  max?: number | null;
  median?: number | null;
  /** Pixels that are clear and hold data, and all pixels of the place. */
  valid: number;
  pixels: number;
}

export interface SeriesDocument extends PartialDocument {
  expression: string;
  geometry: object;
  /** From the earliest date on. */
  series: SeriesEntry[];
  /** Tiles that lack the bands of the expression. */
  skipped: number;
}

export interface SpectraRequest extends FilterParams {
  /** A GeoJSON Point, Polygon or MultiPolygon in degrees. */
  geometry: object;
}

/** One date. A point has values, a polygon has means and deviations; null for a band without data there. */
export interface SpectrumEntry {
  /** As in RFC 3339. */
  datetime: string;
  end_datetime?: string;
  collection: string;
  scenes: string[];
  /** Index among the sensors of the document. */
  sensor: number;
  values?: (number | null)[];
  mean?: (number | null)[];
  std?: (number | null)[];
  /** Pixels that are clear and hold data, and all pixels of the place. */
  valid: number;
  pixels: number;
}

export interface SpectraDocument extends PartialDocument {
  geometry: object;
  /** Wavelengths in nm. */
  sensors: { bands: { name: string; wavelength: number; fwhm?: number; bad_band?: boolean }[] }[];
  /** From the earliest date on. */
  spectra: SpectrumEntry[];
  /** Tiles without a spectrum. */
  skipped: number;
}

/** A scene as the store holds it. Times as in RFC 3339. */
export interface SceneSummary {
  id: string;
  collection: string;
  datetime: string;
  end_datetime: string;
  platform: string | null;
  /** Number of its tiles. */
  tiles: number;
  warnings: string[];
  committed: string;
}

/** A version of a model. */
export interface ModelDocument<Card> {
  id: string;
  version: string;
  /** Versions of the model that are these now. */
  latest: string;
  best: string;
  card: Card;
}

/** A place by what it looks like. */
export interface SimilarPlaceDocument {
  collection: string;
  grid: string;
  geocode: string;
  /** The tile whose image was looked at. */
  tile: string;
  datetime: string;
  distance: number;
  /** From 0. */
  cluster?: number;
}

export interface SimilarDocument {
  place: SimilarPlaceDocument;
  /** The nearest first. */
  similar: SimilarPlaceDocument[];
}

/** A version of a model, as lists tell of it. */
export interface ListedVersion {
  version: string;
  /** RFC 3339. */
  createdAt: string;
  epochs: number;
  metrics: { validation: { mse: number; r2: number } };
  /** The model that its weights started from. */
  parent: string | null;
}

/** CPU time, memory and sent bytes of a node. Counters grow from its start on. */
export interface NodeUsageDocument {
  id: string;
  /** RFC 3339. */
  startedAt: string;
  cpuSeconds: number;
  memoryBytes: number;
  /** False if the figures do not include child processes. */
  includesChildren: boolean;
  network?: { namespace: string; sentBytes: number; loopbackBytes: number };
}

/** A node of a cluster. */
export interface ListedNode {
  id: string;
  url?: string;
  zone?: string;
  weight?: number;
  slots: number;
  /** Absent, as all that follows, of a node that is alone. */
  states?: { initializing: number; available: number; leaving: number };
  /** Of the tiles in its slots. */
  bytes?: number;
  /** The part of all bytes that it should hold, 0 to 1. */
  share?: number;
  /** Commits that others have applied and it has not. */
  lag?: number;
  running: boolean;
  draining: boolean;
}

interface Amount {
  slots: number;
  bytes: number;
}

/** Moves of a rebalance, done or planned. */
export interface RebalanceDocument {
  dryRun: boolean;
  nodes: { id: string; share: number; before: Amount; after: Amount; takes: Amount; gives: Amount }[];
  moved: Amount;
  /** Bytes that have to move so that nodes hold what they hold after it. */
  least: number;
  /** Standard deviation of bytes over shares, percent of the mean. */
  deviation: { before: number; after: number };
}

/** Where the tiles of a cell are. */
export interface CellLocation {
  grid: string;
  geocode: string;
  slot?: number;
  owners: { node: string; state: string }[];
}
