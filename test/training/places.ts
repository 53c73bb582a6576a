/** Writes the dates of a place as files, the way ingest leaves a tile. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type DataType, encodeCog, type PixelArray } from '../../src/raster/index.js';
import type { PlaceDate } from '../../src/training/index.js';
import type { DatePixels } from '../../src/training/patches.js';

const SCALE = 0.0001;
const OFFSET = -0.1;
const NODATA = 0;

export function writeRaster(
  path: string,
  dataType: DataType,
  size: { width: number; height: number },
  bands: PixelArray[],
): void {
  writeFileSync(
    path,
    encodeCog({
      ...size,
      dataType,
      bands,
      transform: { originX: 10, originY: 50, pixelWidth: 0.0003, pixelHeight: 0.0003 },
      epsg: 4326,
      nodata: dataType === 'uint16' ? NODATA : undefined,
      overviews: 'nearest',
    }),
  );
}

/** Two groups, one with red, green and blue and one with near infrared, and the mask. */
export function writeDate(folder: string, name: string, date: DatePixels): PlaceDate {
  const stored = (values: Float32Array) =>
    Uint16Array.from(values, (value) =>
      Number.isNaN(value) ? NODATA : Math.round((value - OFFSET) / SCALE),
    );
  const visible = join(folder, `${name}-visible.tif`);
  const nir = join(folder, `${name}-nir.tif`);
  const mask = join(folder, `${name}-mask.tif`);
  writeRaster(visible, 'uint16', date, [stored(date.blue), stored(date.green), stored(date.red)]);
  writeRaster(nir, 'uint16', date, [stored(date.nir)]);
  writeRaster(mask, 'uint8', date, [date.mask]);
  const band = (path: string, index: number) => ({ path, band: index, scale: SCALE, offset: OFFSET });
  return {
    time: date.time,
    red: band(visible, 2),
    green: band(visible, 1),
    blue: band(visible, 0),
    nir: band(nir, 0),
    mask,
  };
}
