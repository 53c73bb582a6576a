/** Tiles grouped by cell, and the tile of each cell that is shown. */
import type { ReportTile } from './demo-report-data.js';

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
