/** A scene for the models of all bands, made of the land of the training tests. */
import { writeFile } from 'node:fs/promises';
import { encodeCog } from '../../src/raster/index.js';
import { field } from '../training/synthetic-land.js';

const NAMES = ['blue', 'green', 'red', 'nir', 'swir16'] as const;

/** uint16 with a scale of 0.0001, of 10 m in EPSG:32633, without a band for clouds. */
export async function writeInfraredScene(path: string, width: number, height: number): Promise<string> {
  const { bands } = field(width, height);
  const file = encodeCog({
    ...{ width, height, dataType: 'uint16', epsg: 32633, nodata: 0, overviews: 'nearest' },
    bands: NAMES.map((name) => Uint16Array.from(bands[name], (value) => Math.round(10_000 * value))),
    transform: { originX: 500_000, originY: 5_300_000, pixelWidth: 10, pixelHeight: 10 },
    bandTags: NAMES.map((description) => ({ description })),
  });
  await writeFile(path, file);
  return path;
}
