/** Pixel sizes on the ground. */
import { groundDistance } from '../../grid/index.js';
import type { RasterHeader } from '../../raster/index.js';
import type { Resolution } from '../scene.js';
import { earthLocator, middleOnEarth } from './raster-extent.js';

/**
 * To three significant digits: scenes of a series differ in the last digits of their measured pixel size, and their tiles
 * must still stack.
 */
const nominal = (metres: number) => Number(metres.toPrecision(3));

/** Ground metres of one pixel step along columns and rows at the raster's centre. Throws TW_INGEST_OFF_EARTH. */
export function groundResolution(header: RasterHeader): Resolution {
  const locate = earthLocator(header);
  const { column, row, lon, lat } = middleOnEarth(header);
  const step = (across: number, down: number) => {
    // A whole pixel where the map goes on that far, else a small part of one, on the side that it goes on.
    for (const part of [1, -1, 1 / 64, -1 / 64]) {
      const place = locate(column + part * across, row + part * down);
      const metres = groundDistance([lon, lat], place) / Math.abs(part);
      if (metres > 0) return metres;
    }
    return NaN;
  };
  return { x: nominal(step(1, 0)), y: nominal(step(0, 1)) };
}

/** The pixel size that a product's projected grid states; ground metres where its grid is not in metres. */
export function gridResolution(header: RasterHeader): Resolution {
  if (header.crs.geographic) return groundResolution(header);
  const { xx, xy, yx, yy } = header.transform;
  return { x: nominal(Math.hypot(xx, yx)), y: nominal(Math.hypot(xy, yy)) };
}
