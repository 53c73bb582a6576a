import { uniform } from './random.js';

/** A window of the synthetic world: metres east and south of its origin, and a pixel size in metres. */
export interface View {
  x: number;
  y: number;
  width: number;
  height: number;
  pixelSize: number;
}

/**
 * Value noise in [0, 1): random numbers at the points of a lattice `spacing` metres apart, with smooth interpolation
 * between them. One value a pixel, row by row.
 */
export function valueNoise(view: View, spacing: number, seed: number): Float32Array {
  const { width, height, pixelSize } = view;
  const field = new Float32Array(width * height);
  const column = new Int32Array(width);
  const weight = new Float32Array(width);
  const firstColumn = Math.floor((view.x + pixelSize / 2) / spacing);
  for (let i = 0; i < width; i++) {
    const at = (view.x + (i + 0.5) * pixelSize) / spacing;
    column[i] = Math.floor(at) - firstColumn;
    weight[i] = smooth(at - Math.floor(at));
  }
  const points = column[width - 1] + 2;
  const latticeRow = (row: number) =>
    Float32Array.from({ length: points }, (_, i) => uniform(firstColumn + i, row, seed));
  let row = NaN;
  let upper = new Float32Array(0);
  let lower = new Float32Array(0);
  for (let j = 0; j < height; j++) {
    const at = (view.y + (j + 0.5) * pixelSize) / spacing;
    if (Math.floor(at) !== row) {
      row = Math.floor(at);
      upper = latticeRow(row);
      lower = latticeRow(row + 1);
    }
    const down = smooth(at - row);
    for (let i = 0; i < width; i++) {
      const c = column[i];
      const w = weight[i];
      const top = upper[c] + (upper[c + 1] - upper[c]) * w;
      const bottom = lower[c] + (lower[c + 1] - lower[c]) * w;
      field[j * width + i] = top + (bottom - top) * down;
    }
  }
  return field;
}

/** Sum of octaves of value noise, each with half the spacing and half the weight of the one before, in [0, 1). */
export function fractalNoise(view: View, spacing: number, octaves: number, seed: number): Float32Array {
  const sum = new Float32Array(view.width * view.height);
  const total = 2 - 2 ** (1 - octaves);
  for (let octave = 0; octave < octaves; octave++) {
    const scale = 2 ** -octave;
    const field = valueNoise(view, spacing * scale, seed + 101 * octave);
    for (let i = 0; i < sum.length; i++) sum[i] += (field[i] * scale) / total;
  }
  return sum;
}

/** The value below which `fraction` of a field in [0, 1) lies, to 1/4096. */
export function quantile(field: Float32Array, fraction: number): number {
  const bins = new Uint32Array(4096);
  for (const value of field) bins[Math.min(4095, Math.max(0, Math.floor(value * 4096)))]++;
  let below = 0;
  for (let bin = 0; bin < 4096; bin++) {
    below += bins[bin];
    if (below >= fraction * field.length) return (bin + 1) / 4096;
  }
  return 1;
}

/** 0 below `from`, 1 above `to`, smooth between (Hermite). */
export function smoothstep(from: number, to: number, value: number): number {
  return smooth(Math.min(1, Math.max(0, (value - from) / (to - from))));
}

function smooth(t: number): number {
  return t * t * (3 - 2 * t);
}
