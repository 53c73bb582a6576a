/** Pixel sizes on the ground. */
import { metresPerDegree } from '../geocode/index.js';
import { pixelToMap, projector, type RasterHeader } from '../raster/index.js';
import type { Resolution } from './scene.js';

/**
 * To three significant digits: scenes of a series differ in the last digits of their measured pixel size, and their tiles
 * must still stack.
 */
const nominal = (metres: number) => Number(metres.toPrecision(3));

/** Ground metres of one pixel step along columns and rows at the raster's centre. */
export function groundResolution(header: RasterHeader): Resolution {
  const toLonLat = projector(header.crs, 'EPSG:4326');
  const at = (column: number, row: number) => toLonLat(...pixelToMap(header.transform, column, row));
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

/** Length of a short step, by the WGS84 arcs at its middle. */
function distance([lon1, lat1]: number[], [lon2, lat2]: number[]): number {
  const metres = metresPerDegree((lat1 + lat2) / 2);
  const eastwards = ((lon2 - lon1 + 540) % 360) - 180;
  return Math.hypot(eastwards * metres.lon, (lat2 - lat1) * metres.lat);
}
