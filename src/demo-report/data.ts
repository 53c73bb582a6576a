/** The data of a report, which the caller gathers, and its tiles by cell. Times are ISO 8601 texts, shown in UTC. */
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
    /** The command that selects the same tiles. */
    command: string;
    /** The conditions in words. */
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
  /** Number of tiles. */
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
  /** Percent, 0-100; null if it is unknown. */
  cloudCover: number | null;
  /** True if the query matched the tile. */
  picked: boolean;
  /**
   * A picture of the cell as a `data:image/png`, `webp` or `jpeg` URI in base64. Other values are not shown, because the
   * report must not load external resources. Needed only for `shownTiles`.
   */
  preview?: string;
}

export interface ReportTraining {
  engine: string;
  /** Wall-clock time of the job. */
  seconds: number;
  /** Which candidates serve, in sentences. */
  served: string[];
  models: ReportModel[];
  skipped: { geocode: string; reason: string }[];
  /** All validation patches as one set; null without models. */
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

export interface ReportCell {
  geocode: string;
  shown: ReportTile;
  tiles: ReportTile[];
}

/** Cells from north to south, west to east. */
export function groupByCell(tiles: ReportTile[]): ReportCell[] {
  const byGeocode = new Map<string, ReportTile[]>();
  for (const tile of tiles) byGeocode.set(tile.geocode, [...(byGeocode.get(tile.geocode) ?? []), tile]);
  return [...byGeocode]
    .map(([geocode, own]) => ({ geocode, shown: bestTile(own), tiles: own }))
    .sort((a, b) => b.shown.bbox[3] - a.shown.bbox[3] || a.shown.bbox[0] - b.shown.bbox[0]);
}

/** The tiles that the report's map shows, one for each cell. Only they need a preview. */
export function shownTiles(tiles: ReportTile[]): ReportTile[] {
  return groupByCell(tiles).map(({ shown }) => shown);
}

/** The newest selected tile, or the least cloudy tile if none is selected. */
export function bestTile(tiles: ReportTile[]): ReportTile {
  const cloud = ({ cloudCover }: ReportTile) => cloudCover ?? 101;
  return tiles.reduce((best, tile) => {
    if (tile.picked !== best.picked) return tile.picked ? tile : best;
    const newer = Date.parse(tile.time) > Date.parse(best.time);
    if (tile.picked) return newer ? tile : best;
    if (cloud(tile) !== cloud(best)) return cloud(tile) < cloud(best) ? tile : best;
    return newer ? tile : best;
  });
}
