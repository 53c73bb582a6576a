/** JSON documents that the API accepts and returns. Times are RFC 3339 texts. */
import type { ClusterNode, ClusterUsage, ListedScene, SubscriptionDocument } from '../api/index.js';
import type { PlacementDiff } from '../dht/index.js';
import type { FilterParams } from '../query/index.js';
import type { TextureNeighbour } from '../training/index.js';

export type { SubscriptionDocument };

export interface SearchRequest extends FilterParams {
  /** Such as `-eo:cloud_cover,datetime`. Default: newest first. */
  sortby?: string;
  limit?: number;
  token?: string;
}

/** Members of an incomplete answer: the slots for which no node of the cluster answers. */
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

export interface SpectraRequest extends FilterParams {
  /** A GeoJSON Point, Polygon or MultiPolygon in degrees. */
  geometry: object;
}

export interface SeriesRequest extends SpectraRequest {
  expression: string;
}

interface DatedEntry {
  datetime: string;
  end_datetime?: string;
  collection: string;
  scenes: string[];
  /** Clear pixels with data. */
  valid: number;
  /** All pixels of the point or polygon. */
  pixels: number;
}

/** One date of a series. A point has a value, a polygon has statistics. Values are null if no pixel is valid. */
export interface SeriesEntry extends DatedEntry {
  value?: number | null;
  mean?: number | null;
  std?: number | null;
  min?: number | null;
  max?: number | null;
  median?: number | null;
}

export interface SeriesDocument extends PartialDocument {
  expression: string;
  geometry: object;
  /** The earliest date first. */
  series: SeriesEntry[];
  /** Tiles that lack the bands of the expression. */
  skipped: number;
}

/** The spectrum of one date. A point has values, a polygon has means and standard deviations. A value is null if the band has no data. */
export interface SpectrumEntry extends DatedEntry {
  /** Index among the sensors of the document. */
  sensor: number;
  values?: (number | null)[];
  mean?: (number | null)[];
  std?: (number | null)[];
}

export interface SpectraDocument extends PartialDocument {
  geometry: object;
  /** Wavelengths in nm. */
  sensors: { bands: { name: string; wavelength: number; fwhm?: number; bad_band?: boolean }[] }[];
  /** The earliest date first. */
  spectra: SpectrumEntry[];
  /** Tiles without a spectrum. */
  skipped: number;
}

export type SceneSummary = ListedScene;

/** A version of a model. */
export interface ModelDocument<Card> {
  id: string;
  version: string;
  /** The current latest and best versions of the model. */
  latest: string;
  best: string;
  card: Card;
}

/** A cell with its distance in the space of textures, and the tile whose texture was used. */
export type SimilarPlaceDocument = Omit<TextureNeighbour, 'version' | 'start'> & { datetime: string };

export interface SimilarDocument {
  place: SimilarPlaceDocument;
  /** The most similar first. */
  similar: SimilarPlaceDocument[];
}

/** A version of a model, as lists show it. */
export interface ListedVersion {
  version: string;
  createdAt: string;
  epochs: number;
  /** How it was trained; `distributed` for the base of a region, whose `places` are counted. Absent for classifiers. */
  mode?: string;
  places?: number;
  metrics: { validation: { mse: number; r2: number } };
  /** The model from which its weights started. */
  parent: string | null;
}

/** CPU time, memory and sent bytes of a node. Counters grow from the start of the node. */
export type NodeUsageDocument = ClusterUsage['nodes'][number];

/** A node. A single node has the required members only. */
export type ListedNode = Pick<ClusterNode, 'id' | 'slots' | 'running' | 'draining'> & Partial<ClusterNode>;

/** Moves of a rebalance, done or planned. */
export type RebalanceDocument = PlacementDiff & { dryRun: boolean };

/** The owners of a cell. */
export interface CellLocation {
  grid: string;
  geocode: string;
  slot?: number;
  owners: { node: string; state: string }[];
}
