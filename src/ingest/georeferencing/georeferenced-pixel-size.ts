/** Pixel sizes on the ground. */
import { chordDistanceMetres } from '../../grid/index.js';
import type { RasterHeader } from '../../raster/index.js';
import type { Resolution } from '../ingest-scene-description.js';
import { centreLonLat, pixelToLonLat } from './georeferenced-extent.js';

/**
 * Rounds to three significant digits: scenes of a series differ in the last digits of their measured pixel size, and their
 * tiles must still stack.
 */
const toNominal = (metres: number) => Number(metres.toPrecision(3));

/** Ground metres of one pixel step along columns and rows at the raster's centre. Throws TW_INGEST_OFF_EARTH. */
export function measurePixelSize(header: RasterHeader): Resolution {
  const locate = pixelToLonLat(header);
  const { column, row, lon, lat } = centreLonLat(header);
  const step = (across: number, down: number) => {
    // A complete pixel if the map extends that far, else a small part of one, on the side where the map extends.
    for (const part of [1, -1, 1 / 64, -1 / 64]) {
      const place = locate(column + part * across, row + part * down);
      const metres = chordDistanceMetres([lon, lat], place) / Math.abs(part);
      if (metres > 0) return metres;
    }
    return NaN;
  };
  return { x: toNominal(step(1, 0)), y: toNominal(step(0, 1)) };
}

/** The pixel size of a product's projected grid; ground metres if its grid is not in metres. */
export function nominalPixelSize(header: RasterHeader): Resolution {
  if (header.crs.geographic) return measurePixelSize(header);
  const { xx, xy, yx, yy } = header.transform;
  return { x: toNominal(Math.hypot(xx, yx)), y: toNominal(Math.hypot(xy, yy)) };
}
