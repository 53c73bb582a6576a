/** Cells of random rasters, and the position of pixels on the grids. */
import fc from 'fast-check';
import { type Grid, geohash } from '../../src/grid/index.js';
import { coverScene } from '../../src/ingest/cells.js';
import { createTransform, pixelToMap } from '../../src/raster/index.js';
import { type Placed, sceneOf } from './geometry-rasters.js';

const turned = (lon: number) => lon - 360 * Math.floor((lon + 180) / 360);

/** Grid coordinates of a pixel position; undefined if the round trip shows that it is not on the grid. */
export function gridPlace(
  raster: Placed,
  grid: Grid,
  column: number,
  row: number,
): [number, number] | undefined {
  const [x, y] = pixelToMap(raster.transform, column, row);
  const [lonThere, lat] = createTransform(raster.crs, 'EPSG:4326')(x, y);
  const lon = turned(lonThere);
  if (!(Math.abs(lat) <= 90) || !(lon < 180)) return undefined;
  const [u, v] = createTransform('EPSG:4326', raster.crs)(lon, lat);
  const period = raster.crs.geographic ? 360 : raster.crs.epsg === 3857 ? 2 * 20037508.342789244 : 34734060;
  const off = raster.crs.geographic || [3857, 6933].includes(raster.crs.epsg ?? 0) ? (u - x) % period : u - x;
  const { xx, yx } = raster.transform;
  const close = Math.hypot(xx, yx) / 4;
  if (Math.min(Math.abs(off), Math.abs(Math.abs(off) - period)) > close || Math.abs(v - y) > close)
    return undefined;
  // A raster wider than the Earth shows a place twice; tiles take the half turns around its middle.
  if (raster.crs.geographic || [3857, 6933].includes(raster.crs.epsg ?? 0)) {
    const [middle] = pixelToMap(raster.transform, raster.width / 2, raster.height / 2);
    if (Math.abs(x - middle) >= period / 2) return undefined;
  }
  const place = grid.fromLonLat(lon, lat);
  return Math.abs(place[1]) <= grid.extent.north ? place : undefined;
}

const MOST = 1000;

/**
 * The cells at the finest precision, up to a given one, at which they are few enough to check each; null if they never are,
 * undefined if the scene has none.
 */
export function cover(
  raster: Placed,
  grid: Grid,
  most: number,
): { precision: number; cells: string[] } | undefined | null {
  const { xx, yx } = raster.transform;
  const unit = (grid.epsg === 4326 ? 1 : 111_000) / (raster.crs.geographic ? 1 : 111_000);
  const pixel = Math.hypot(xx, yx) * unit;
  const [, y = 0] = gridPlace(raster, geohash, raster.width / 2, raster.height / 2) ?? [];
  const isPolar = grid === geohash && Math.abs(y) > 85;
  for (let precision = Math.min(most, grid.maxPrecision); precision >= 1; precision--) {
    const cell = grid.cellSize(precision);
    if (((raster.width * pixel) / cell.width) * ((raster.height * pixel) / cell.height) > MOST) continue;
    // Every cell of the last row touches the pole.
    if (isPolar && 360 / cell.width > MOST) continue;
    try {
      const cells = coverScene(sceneOf(raster), grid, precision);
      if (cells.length <= MOST) return { precision, cells };
    } catch (error) {
      const { code } = error as { code?: string };
      if (code === 'TW_INGEST_OUTSIDE_GRID' || code === 'TW_INGEST_OFF_EARTH') return undefined;
      if (code !== 'TW_INGEST_TOO_MANY_TILES') throw error;
    }
  }
  return null;
}

export const precisions = fc.integer({ min: 1, max: 24 });
