/** Synthetic land for tests: smooth fields of vegetation over soil, whose NDVI depends on colour in a curved way. */

import { Mask } from '../../src/raster/index.js';
import type { AcquisitionPixels } from '../../src/training/acquisitions.js';
import type { BandName } from '../../src/training/models/spec.js';
import { randomStream } from '../../src/utils/random.js';

/** A date with all bands. */
export interface Field extends AcquisitionPixels {
  bands: Record<BandName, Float32Array>;
}

export function field(width: number, height: number, options: { seed?: number; time?: number } = {}): Field {
  const { seed = 1, time = Date.UTC(2020, 5, 1) } = options;
  const random = randomStream(seed).next;
  const phase = Array.from({ length: 4 }, () => 2 * Math.PI * random());
  const count = width * height;
  const plane = () => new Float32Array(count);
  const nir = plane();
  // Both near infrared bands have the same values here.
  const bands = { red: plane(), green: plane(), blue: plane(), nir, nir08: nir, swir16: plane() };
  const pixels: Field = {
    time,
    width,
    height,
    bands,
    mask: new Uint8Array(count).fill(Mask.clear),
  };
  for (let at = 0; at < count; at++) {
    const x = at % width;
    const y = Math.floor(at / width);
    const wave =
      Math.sin(x / 11 + phase[0]!) * Math.sin(y / 13 + phase[1]!) + Math.sin((x + y) / 29 + phase[2]!) / 2;
    const plants = 1 / (1 + Math.exp(-2 * wave));
    const noise = () => 0.004 * (random() - 0.5);
    bands.red[at] = 0.16 * (1 - plants) ** 1.5 + 0.03 + noise();
    bands.green[at] = 0.11 * (1 - plants) + 0.06 + noise();
    bands.blue[at] = 0.08 * (1 - plants) + 0.03 + noise();
    bands.nir[at] = 0.2 + 0.25 * plants + noise();
    bands.swir16[at] = 0.32 - 0.2 * plants ** 1.5;
  }
  return pixels;
}

/** Returns the same cell a week earlier, partly under a semi-transparent cloud. */
export function clouded(clear: Field): Field {
  const plane = (values: Float32Array) =>
    values.map((value, at) => {
      const alpha = cloudAt(at % clear.width, Math.floor(at / clear.width));
      return value * (1 - alpha) + 0.6 * alpha;
    });
  const { red, green, blue, swir16 } = clear.bands;
  const nir = plane(clear.bands.nir);
  return {
    ...clear,
    time: clear.time - 7 * 86_400_000,
    bands: {
      red: plane(red),
      green: plane(green),
      blue: plane(blue),
      nir,
      nir08: nir,
      swir16: plane(swir16),
    },
    mask: clear.mask.map((code, at) =>
      cloudAt(at % clear.width, Math.floor(at / clear.width)) > 0.1 ? Mask.cloud : code,
    ),
  };
}

/** Fraction of the light that a cloud absorbs. */
function cloudAt(x: number, y: number): number {
  const thickness = Math.sin(x / 23 + 1) * Math.sin(y / 31) - 0.3;
  return Math.min(0.8, Math.max(0, 1.3 * thickness));
}
