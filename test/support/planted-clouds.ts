/** Land with lakes, clouds and their shadows at known places. */
import { randomStream } from '../../src/utils/random.js';
import type { CloudMaskSet } from './cloud-masks.js';

export const LAND = [0.09, 0.09, 0.07, 0.32, 0.2, 0.1];
const CLOUD = [0.5, 0.48, 0.5, 0.55, 0.4, 0.3];
const LAKE = [0.08, 0.06, 0.04, 0.03, 0.01, 0.01];
/** Share of the light that is left in a shadow, in the six bands: the sky is blue. */
const SHADE = [0.9, 0.8, 0.7, 0.45, 0.35, 0.35];

interface PlantOptions {
  /** From a cloud to its shadow, pixels. */
  dx: number;
  dy: number;
  seed: number;
  clouds?: number;
  /** False if the shadows belong to other clouds than those in the image. */
  casts?: boolean;
  width?: number;
  height?: number;
}

/** `lake`: water under the sun. */
type PlantedClouds = Omit<CloudMaskSet, 'clear'> & { lake: Uint8Array };

export function plantClouds(options: PlantOptions): PlantedClouds {
  const { dx, dy, seed, clouds = 30, casts = true, width = 400, height = 400 } = options;
  const random = randomStream(seed).next;
  const size = width * height;
  const [cloud, shaded, water] = [0, 1, 2].map(() => new Uint8Array(size));
  /** A disc with a wavy edge. */
  const disc = (x: number, y: number, radius: number, wave: number, into: Uint8Array) => {
    for (let at = 0; at < size; at++) {
      const [across, down] = [(at % width) - x, Math.floor(at / width) - y];
      const edge = radius * (1 + 0.3 * Math.sin(3 * Math.atan2(down, across) + wave));
      if (Math.hypot(across, down) < edge) into[at] = 1;
    }
  };
  // Clouds beyond the edges of the image also cast shadows into it.
  const margin = Math.max(Math.abs(dx), Math.abs(dy));
  const place = () => [-margin + random() * (width + 2 * margin), -margin + random() * (height + 2 * margin)];
  for (let i = 0; i < clouds; i++) {
    const [x, y] = place();
    const radius = 4 + 10 * random();
    const wave = 6 * random();
    disc(x, y, radius, wave, cloud);
    const [left, top] = casts ? [x + dx, y + dy] : place();
    disc(left, top, radius, wave, shaded);
  }
  for (let i = 0; i < 6; i++)
    disc(width * random(), height * random(), 6 + 4 * random(), 6 * random(), water);
  const bands = LAND.map((_, band) =>
    Float32Array.from({ length: size }, (_, at) => {
      if (cloud[at] === 1) return CLOUD[band] * (0.9 + 0.1 * random());
      const ground = water[at] === 1 ? LAKE[band] : LAND[band];
      return ground * (shaded[at] === 1 ? SHADE[band] : 1) * (0.95 + 0.1 * random());
    }),
  );
  const [blue, green, red, nir, swir16, swir22] = bands;
  return {
    ...{ width, height, cloud },
    bands: { blue, green, red, nir, swir16, swir22 },
    valid: new Uint8Array(size).fill(1),
    shadow: shaded.map((is, at) => is & (1 - cloud[at])),
    lake: water.map((is, at) => is & (1 - cloud[at]) & (1 - shaded[at])),
  };
}
