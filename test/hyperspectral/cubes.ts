/** Small cubes in ENVI files, and the pixels of their tiles. */
import { join } from 'node:path';
import type { TilewrightNode } from '../../src/node.js';
import { Mask, readImage } from '../../src/raster/index.js';
import { writeEnvi } from '../raster/envi.js';
import { random } from '../raster/images.js';
import { tilesOf } from '../support/node.js';

export const COUNT = 20;
export const HOLE = -9999;
const SIDE = 70;

/** A bad band and an empty band. */
export const UNUSED = [8, 12];

/**
 * Writes a cube over several geohash cells of precision 6: mixtures of three smooth spectra, noise, and a corner without data. Returns
 * the path of its header.
 */
export function writeCube(
  folder: string,
  name: string,
  {
    seed = 1,
    date = '2024-06-01',
    side = SIDE,
    scale = 10_000,
    bands = COUNT,
    empty = [12],
    /** Upper left corner, UTM zone 33. */
    at = [500_000, 5_300_000],
  } = {},
): string {
  const next = random(seed);
  const noise = () => next() + next() + next() - 1.5;
  const pure = [0, 1, 2].map((k) =>
    Array.from({ length: bands }, (_, b) => 0.3 + 0.2 * Math.sin((k + 1) * 0.4 * b + k)),
  );
  const mixed = Array.from({ length: side * side }, (_, i) => {
    const [x, y] = [(i % side) / side, Math.floor(i / side) / side];
    return [x * y, x * (1 - y), 1 - x];
  });
  const values = Array.from({ length: bands }, (_, band) =>
    mixed.map((shares, i) => {
      if (empty.includes(band) || (i % side < 9 && i < 20 * side)) return HOLE;
      const clean = shares.reduce((sum, share, k) => sum + share * pure[k]![band]!, 0);
      return Math.round(scale * (clean + 0.01 * noise()));
    }),
  );
  writeEnvi(join(folder, `${name}.bil`), {
    ...{ width: side, height: side, bands: values, type: 'int16', interleave: 'bil' },
    lines: [
      `map info = {UTM, 1, 1, ${at.join()}, 30, 30, 33, North, WGS-84}`,
      `data ignore value = ${HOLE}`,
      `acquisition time = ${date}T10:00:00Z`,
      'wavelength units = Nanometers',
      `wavelength = {${values.map((_, band) => 450 + 50 * band).join()}}`,
      `bbl = {${values.map((_, band) => Number(band !== 8)).join()}}`,
      `reflectance scale factor = ${scale}`,
    ],
  });
  return join(folder, `${name}.hdr`);
}

/** Physical values of the bands at all pixels of the collection that are clear and valid in all bands, read one by one. */
export async function pixelsOf(
  node: TilewrightNode,
  collection: string,
  bands: readonly number[],
): Promise<number[][]> {
  const pixels: number[][] = [];
  for (const tile of await tilesOf(node)) {
    if (tile.collection !== collection || tile.source !== 'raw') continue;
    const group = tile.groups.find(({ role }) => role === 'data')!;
    const { bands: stored } = await readImage(node.storage.tileImage(tile, group.name));
    const mask = (await readImage(node.storage.tileImage(tile, 'mask'))).bands[0]!;
    for (let i = 0; i < group.width * group.height; i++) {
      if (mask[i] !== Mask.clear && mask[i] !== Mask.notAssessed) continue;
      if (bands.some((band) => stored[band]![i] === group.nodata)) continue;
      pixels.push(
        bands.map((band) => stored[band]![i]! * group.bands[band]!.scale + group.bands[band]!.offset),
      );
    }
  }
  return pixels;
}

/** Mean and sample covariance by two passes. */
export function momentsOf(pixels: readonly number[][]): { mean: number[]; covariance: number[][] } {
  const count = pixels.length;
  const bands = Array.from(pixels[0]!.keys());
  const mean = bands.map((b) => pixels.reduce((sum, pixel) => sum + pixel[b]!, 0) / count);
  const covariance = bands.map((i) =>
    bands.map(
      (j) =>
        pixels.reduce((sum, pixel) => sum + (pixel[i]! - mean[i]!) * (pixel[j]! - mean[j]!), 0) / (count - 1),
    ),
  );
  return { mean, covariance };
}
