/** Square rasters across the antimeridian and at poles, and what exact gdalwarp makes of them. */
import { writeFile } from 'node:fs/promises';
import type { Grid, GridBounds } from '../../src/grid/index.js';
import { createTransform, crsFromEpsg, encodeCog, readRaster } from '../../src/raster/index.js';
import { gdal } from '../raster/gdal.js';

export interface Square {
  epsg: number;
  /** Upper left corner, and pixel size. */
  x: number;
  y: number;
  pixel: number;
}

export const SIDE = 300;

const noise = (i: number) => 1 + (((i * 2654435761) >>> 0) % 60_000);

/** Pixel i of the square is `value(i)`. */
export async function writeSquare(
  path: string,
  { epsg, x, y, pixel }: Square,
  value: (i: number) => number = noise,
): Promise<string> {
  const band = Uint16Array.from({ length: SIDE * SIDE }, (_, i) => value(i));
  const file = encodeCog({
    width: SIDE,
    height: SIDE,
    dataType: 'uint16',
    bands: [band],
    transform: { originX: x, originY: y, pixelWidth: pixel, pixelHeight: pixel },
    epsg,
    nodata: 0,
    bandTags: [{ description: 'b1' }],
    overviews: 'nearest',
  });
  await writeFile(path, file);
  return path;
}

/** A square of pixels around a place. */
export function around(epsg: number, lon: number, lat: number, pixel: number): Square {
  const [x, y] = createTransform('EPSG:4326', crsFromEpsg(epsg))(lon, lat);
  return { epsg, x: x - (pixel * SIDE) / 2, y: y + (pixel * SIDE) / 2, pixel };
}

/** The output of exact gdalwarp for a file in a rectangle; a geographic file is queried in its own longitudes. */
export async function gdalCell(
  path: string,
  square: Square,
  grid: Grid,
  bounds: GridBounds,
  { width, height }: { width: number; height: number },
  out: string,
) {
  const turn = square.epsg !== 4326 ? 0 : square.x > 0 ? 1 : -1;
  const { west, east } = grid.extent;
  const side = turn > 0 ? bounds.west < 0 : bounds.west > 0;
  const shift = side ? turn * (east - west) : 0;
  const te = [bounds.west + shift, bounds.south, bounds.east + shift, bounds.north].map(String);
  const to = ['-t_srs', `EPSG:${grid.epsg}`, '-te', ...te, '-ts', String(width), String(height)];
  gdal('gdalwarp', '-q', '-overwrite', '-et', '0', '-r', 'near', ...to, path, out);
  return (await readRaster(out)).bands[0]!;
}
