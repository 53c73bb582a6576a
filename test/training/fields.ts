/** Synthetic land for tests: smooth fields of vegetation over soil, whose NDVI depends on colour in a curved way. */
import { Mask } from '../../src/raster/index.js';
import type { DatePixels } from '../../src/training/patches.js';
import { randomStream } from '../../src/training/random.js';

export function field(
  width: number,
  height: number,
  options: { seed?: number; time?: number } = {},
): DatePixels {
  const { seed = 1, time = Date.UTC(2020, 5, 1) } = options;
  const random = randomStream(seed);
  const phase = Array.from({ length: 4 }, () => 2 * Math.PI * random());
  const count = width * height;
  const pixels: DatePixels = {
    time,
    width,
    height,
    red: new Float32Array(count),
    green: new Float32Array(count),
    blue: new Float32Array(count),
    nir: new Float32Array(count),
    mask: new Uint8Array(count).fill(Mask.clear),
  };
  for (let at = 0; at < count; at++) {
    const x = at % width;
    const y = Math.floor(at / width);
    const wave =
      Math.sin(x / 11 + phase[0]!) * Math.sin(y / 13 + phase[1]!) + Math.sin((x + y) / 29 + phase[2]!) / 2;
    const plants = 1 / (1 + Math.exp(-2 * wave));
    const noise = () => 0.004 * (random() - 0.5);
    pixels.red[at] = 0.16 * (1 - plants) ** 1.5 + 0.03 + noise();
    pixels.green[at] = 0.11 * (1 - plants) + 0.06 + noise();
    pixels.blue[at] = 0.08 * (1 - plants) + 0.03 + noise();
    pixels.nir[at] = 0.2 + 0.25 * plants + noise();
  }
  return pixels;
}
