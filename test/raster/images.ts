/** Seeded images for tests. */
import assert from 'node:assert/strict';
import { allocatePixels, type CogImage, type DataType, type PixelArray } from '../../src/raster/index.js';

/** Numbers in [0, 1), the same for the same seed (mulberry32). */
export function random(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

/** Smooth with noise, over the entire range of the type; `hole` marks a corner without data. */
export function pixels(
  dataType: DataType,
  width: number,
  height: number,
  seed: number,
  hole?: number,
): PixelArray {
  const next = random(seed);
  const out = allocatePixels(dataType, width * height);
  for (let y = 0, i = 0; y < height; y++) {
    for (let x = 0; x < width; x++, i++) {
      const wave = Math.sin(x / 17 + seed) * Math.cos(y / 23) * 3e4 + 100 * next();
      out[i] = dataType.startsWith('float') ? wave / 7 : Math.floor(wave);
      if (next() < 0.01) out[i] = next() * 2 ** 32;
      if (hole !== undefined && x + y < (width + height) / 6) out[i] = hole;
    }
  }
  return out;
}

export function image(
  dataType: DataType,
  width: number,
  height: number,
  bands = 1,
  extra: Partial<CogImage> = {},
): CogImage {
  return {
    width,
    height,
    dataType,
    bands: Array.from({ length: bands }, (_, band) =>
      pixels(dataType, width, height, band + 1, extra.nodata),
    ),
    transform: { originX: 500_000, originY: 5_000_000, pixelWidth: 10, pixelHeight: 20 },
    epsg: 32633,
    overviews: 'mean',
    ...extra,
  };
}

/** Like deepEqual, with a short message: which pixel differs first. */
export function assertSamePixels(found: PixelArray, wanted: PixelArray): void {
  assert.equal(found.constructor, wanted.constructor);
  assert.equal(found.length, wanted.length);
  const at = found.findIndex((value, i) => !Object.is(value, wanted[i]));
  assert.ok(at < 0, `pixel ${at} is ${found[at]}, not ${wanted[at]}`);
}

/** Replaces a number in the first directory of a little-endian TIFF. */
export function setShort(tiff: Buffer, tag: number, value: number): void {
  const first = tiff.readUInt32LE(4);
  for (let i = 0; i < tiff.readUInt16LE(first); i++) {
    const entry = first + 2 + 12 * i;
    if (tiff.readUInt16LE(entry) === tag) tiff.writeUInt16LE(value, entry + 8);
  }
}
