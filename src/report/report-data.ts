/** What a report of the demo shows: plain data, gathered by the caller. Times are ISO 8601 strings, shown in UTC. */
import type { Bbox, GridName } from '../grid/index.js';

export interface DemoReport {
  title: string;
  generatedAt: string;
  /** Processor, cores, memory and operating system, in words. */
  machine: string;
  collection: { id: string; grid: GridName; precision: number };
  scenes: ReportScene[];
  tiles: ReportTile[];
  query: {
    /** The command that picks the same tiles. */
    command: string;
    /** What it asks for, in words. */
    description: string;
    matched: number;
    total: number;
  };
  training: ReportTraining;
  /** Commands to try next. */
  next: string[];
}

export interface ReportScene {
  id: string;
  collection: string;
  time: string;
  platform: string | null;
  bands: string[];
  /** Pixels, in words: `1830 x 1830`. */
  size: string;
  /** How many tiles it was cut into. */
  tiles: number;
  warnings: string[];
}

export interface ReportTile {
  id: string;
  geocode: string;
  scene: string;
  time: string;
  bbox: Bbox;
  /** Percent, 0-100. */
  coverage: number;
  /** Percent, 0-100; null where nothing could assess it. */
  cloudCover: number | null;
  /** True where the query matched it. */
  picked: boolean;
  /**
   * A picture of the whole cell as a `data:image/png`, `webp` or `jpeg` URI in base64. Anything else is not shown: the
   * report must not ask for other resources. Needed for `shownTiles` only.
   */
  preview?: string;
}

export interface ReportTraining {
  engine: string;
  /** Wall clock of the whole job. */
  seconds: number;
  epochs: number;
  models: ReportModel[];
  skipped: { geocode: string; reason: string }[];
  /** All validation patches taken as one set; null without models. */
  pooled: { model: ReportMetrics; linear: ReportMetrics; mean: ReportMetrics } | null;
}

export interface ReportModel {
  geocode: string;
  bbox: Bbox;
  losses: { epoch: number; train: number; validation: number }[];
  metrics: { train: ReportMetrics; validation: ReportMetrics };
  /** On the same validation patches. */
  baseline: { mean: ReportMetrics; linear: ReportMetrics };
  /** NDVI of the validation patches, by index. */
  predictions: { truth: number[]; predicted: number[] };
  patches: { train: number; validation: number };
  seconds: number;
}

/** Mean squared error, and the coefficient of determination. */
export interface ReportMetrics {
  mse: number;
  r2: number;
}
