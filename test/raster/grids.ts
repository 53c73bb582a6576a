/** Control grids for tests of warps, where their pixels lie, and a plain warp. */
import type { ControlGrid, PixelArray, Resampling } from '../../src/raster/index.js';
import { random } from './images.js';

/** Position in the source of the centre of a pixel of the destination. */
export type PixelMap = (column: number, row: number) => [x: number, y: number];

/** A control grid with nodes moved by up to `jitter` pixels, a share of them nowhere. */
export function gridOf(
  width: number,
  height: number,
  step: number,
  map: PixelMap,
  { jitter = 0, nowhere = 0, seed = 0 } = {},
): ControlGrid {
  const next = random(seed);
  const columns = Math.ceil(width / step) + 1;
  const rows = Math.ceil(height / step) + 1;
  const nodes = Array.from({ length: columns * rows }, (_, node) => {
    const [x, y] = map((node % columns) * step, Math.floor(node / columns) * step);
    if (next() < nowhere) return [Number.NaN, Number.NaN];
    return [x + jitter * (next() - 0.5), y + jitter * (next() - 0.5)];
  });
  const x = Float64Array.from(nodes, (node) => node[0]!);
  const y = Float64Array.from(nodes, (node) => node[1]!);
  return { width, height, step, columns, rows, x, y };
}

export const affine =
  (turn: number, scale: number, shear: number, left: number, top: number): PixelMap =>
  (column, row) => {
    const x = column + shear * row;
    return [
      left + scale * (x * Math.cos(turn) - row * Math.sin(turn)),
      top + scale * (x * Math.sin(turn) + row * Math.cos(turn)),
    ];
  };

/** Position of the centre of a pixel: bilinear between the nodes that have a part in it. */
export function positionOf(grid: ControlGrid, column: number, row: number): [x: number, y: number] {
  const { columns, step } = grid;
  const at = (nodes: Float64Array) => {
    let sum = 0;
    for (const [i, across] of [
      [Math.floor(column / step), 1 - (column % step) / step],
      [Math.floor(column / step) + 1, (column % step) / step],
    ] as const)
      for (const [j, down] of [
        [Math.floor(row / step), 1 - (row % step) / step],
        [Math.floor(row / step) + 1, (row % step) / step],
      ] as const)
        if (across * down > 0) sum += across * down * nodes[j * columns + i]!;
    return sum;
  };
  return [at(grid.x), at(grid.y)];
}

/**
 * A plain implementation: one projection per pixel, no fast path. `at` returns the source position of a point of the destination. Results
 * are undefined where there is no data.
 */
export function plainWarp(
  resampling: Resampling,
  pixels: PixelArray,
  width: number,
  height: number,
  nodata: number | undefined,
  at: (column: number, row: number) => [number, number],
  outWidth: number,
  outHeight: number,
): (number | undefined)[] {
  const read = (x: number, y: number) => {
    if (x < 0 || y < 0 || x >= width || y >= height) return undefined;
    const value = pixels[y * width + x]!;
    return Number.isNaN(value) || value === nodata ? undefined : value;
  };
  const out: (number | undefined)[] = [];
  for (let row = 0; row < outHeight; row++) {
    for (let column = 0; column < outWidth; column++) {
      const [x, y] = at(column + 0.5, row + 0.5);
      const own = read(Math.floor(x), Math.floor(y));
      if (own === undefined || resampling === 'nearest') {
        out.push(own);
        continue;
      }
      const left = Math.floor(x - 0.5);
      const top = Math.floor(y - 0.5);
      let sum = 0;
      let weights = 0;
      for (const [i, j] of [
        [0, 0],
        [1, 0],
        [0, 1],
        [1, 1],
      ] as const) {
        const value = read(left + i, top + j);
        const weight = Math.abs(1 - i - (x - 0.5 - left)) * Math.abs(1 - j - (y - 0.5 - top));
        if (value === undefined) continue;
        sum += value * weight;
        weights += weight;
      }
      out.push(sum / weights);
    }
  }
  return out;
}
