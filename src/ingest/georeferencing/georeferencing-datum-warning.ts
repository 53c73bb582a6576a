/** Warns if the error of a scene's datum shift is large relative to its pixels. */
import { chordDistanceMetres } from '../../grid/index.js';
import { pixelToLonLat } from './georeferenced-extent.js';
import type { GeoBox } from './georeferenced-grid-transform.js';

/** Undefined if the error of the datum shift is below half a pixel. */
export function datumWarning(position: GeoBox): string | undefined {
  const { datumErrorMetres = 0 } = position.crs;
  if (datumErrorMetres === 0) return undefined;
  if (datumErrorMetres === Infinity)
    return position.crs.proj4.includes('+towgs84=')
      ? 'the accuracy of the shift from its datum to WGS 84 is not known: compare some positions with a map'
      : 'its datum is treated as WGS 84, because the shift between them is not known: positions may be off by some hundred metres';
  const pixel = centrePixelMetres(position);
  if (datumErrorMetres <= pixel / 2) return undefined;
  return `the datum shift used is approximate: positions may be off by ${datumErrorMetres} m. For better positions, reproject with gdalwarp, which chooses the shift by the area and uses PROJ's grids if they are installed.`;
}

/** Side of the pixel in the middle of a raster; 0 if that is not on Earth. */
function centrePixelMetres(position: GeoBox): number {
  const locate = pixelToLonLat(position);
  const column = Math.floor(position.width / 2);
  const row = Math.floor(position.height / 2);
  const metres = chordDistanceMetres(locate(column, row), locate(column + 1, row));
  return Number.isFinite(metres) ? metres : 0;
}
