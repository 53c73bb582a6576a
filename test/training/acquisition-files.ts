/** Writes the dates of a cell as files, in the format that ingest writes. */

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type DataType, encodeCog, type PixelArray } from '../../src/raster/index.js';
import type { BandSource } from '../../src/training/acquisitions.js';
import type { AcquisitionFiles } from '../../src/training/index.js';
import type { BandName } from '../../src/training/models/spec.js';
import { imageFile } from '../support/image-file.js';
import type { Field } from './synthetic-land.js';

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

/** Two groups, one with the visible bands and one with the infrared ones, and the mask. */
export function writeDate(
  folder: string,
  name: string,
  date: Field,
): AcquisitionFiles & { bands: Record<BandName, BandSource> } {
  const stored = (values: Float32Array) => {
    // `Uint16Array.from` goes through an iterator, which takes ten times as long.
    const codes = new Uint16Array(values.length);
    for (let at = 0; at < codes.length; at++) {
      const value = values[at]!;
      codes[at] = Number.isNaN(value) ? NODATA : Math.round((value - OFFSET) / SCALE);
    }
    return codes;
  };
  const visible = join(folder, `${name}-visible.tif`);
  const infrared = join(folder, `${name}-infrared.tif`);
  const mask = join(folder, `${name}-mask.tif`);
  const { red, green, blue, nir, swir16 } = date.bands;
  writeRaster(visible, 'uint16', date, [stored(blue), stored(green), stored(red)]);
  writeRaster(infrared, 'uint16', date, [stored(nir), stored(swir16)]);
  writeRaster(mask, 'uint8', date, [date.mask]);
  const band = (path: string, index: number) => ({
    ...imageFile(path),
    band: index,
    scale: SCALE,
    offset: OFFSET,
  });
  return {
    time: date.time,
    bands: {
      red: band(visible, 2),
      green: band(visible, 1),
      blue: band(visible, 0),
      nir: band(infrared, 0),
      nir08: band(infrared, 0),
      swir16: band(infrared, 1),
    },
    mask: imageFile(mask),
  };
}
