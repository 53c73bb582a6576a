/** Pixel sizes on the ground. */
import { projector, type RasterHeader } from '../raster/index.js';

/** WGS84: semi-major axis in metres and first eccentricity squared. */
const A = 6378137;
const E2 = 0.00669437999014;

export interface Resolution {
  x: number;
  y: number;
}

/**
 * To three significant digits: scenes of a series differ in the last digits of their measured pixel size, and their tiles
 * must still stack.
 */
const nominal = (metres: number) => Number(metres.toPrecision(3));

/** Ground metres of one pixel step along columns and rows at the raster's centre (WGS84 radii of curvature). */
export function groundResolution(header: RasterHeader): Resolution {
  const { transform: t } = header;
  const toLonLat = projector(header.crs, 'EPSG:4326');
  const at = (column: number, row: number) =>
    toLonLat(t.originX + t.xx * column + t.xy * row, t.originY + t.yx * column + t.yy * row);
  const column = header.width / 2;
  const row = header.height / 2;
  const centre = at(column, row);
  return {
    x: nominal(distance(centre, at(column + 1, row))),
    y: nominal(distance(centre, at(column, row + 1))),
  };
}

/** The pixel size that a product's projected grid states; ground metres where its grid is not in metres. */
export function gridResolution(header: RasterHeader): Resolution {
  if (header.crs.geographic) return groundResolution(header);
  const { xx, xy, yx, yy } = header.transform;
  return { x: nominal(Math.hypot(xx, yx)), y: nominal(Math.hypot(xy, yy)) };
}

/** Length of a short step, by the meridian radius M and the parallel radius N cos(lat) of the WGS84 ellipsoid. */
function distance([lon1, lat1]: number[], [lon2, lat2]: number[]): number {
  const rad = Math.PI / 180;
  const lat = ((lat1 + lat2) / 2) * rad;
  const w2 = 1 - E2 * Math.sin(lat) ** 2;
  const n = A / Math.sqrt(w2);
  const m = (A * (1 - E2)) / w2 ** 1.5;
  const dLon = ((lon2 - lon1 + 540) % 360) - 180;
  return Math.hypot(dLon * rad * n * Math.cos(lat), (lat2 - lat1) * rad * m);
}
