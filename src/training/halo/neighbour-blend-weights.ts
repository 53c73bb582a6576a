/**
 * Weights of the models of neighbouring cells near their common borders. Invariant: the weights of a pixel depend only on its position and
 * on which cells around it take part, so both sides of a border compute the same weights; they sum to 1.
 */
import type { PixelGrid } from '../../grid/index.js';
import type { PixelBox } from '../inference/index.js';

/** A cell, counted from the cell of the tile. */
export interface CellOffset {
  east: number;
  south: number;
}

/** The part of a tile that a neighbour takes part in, and its weight there, row by row. */
export interface NeighbourWeights {
  box: PixelBox;
  weights: Float32Array;
}

/**
 * Returns the weights of neighbours within `radius` pixels of the border of a tile, in the order of `neighbours`. The tile's own model has
 * the rest. Along an axis, the weight of a cell falls from 1 to 0 over 2 * `radius` pixels across its border; the weight of a cell is the
 * product of both axes, divided by the sum over the cells that take part.
 */
export function neighbourWeights(
  { width, height }: PixelGrid,
  neighbours: readonly CellOffset[],
  radius: number,
): NeighbourWeights[] {
  const across = axisWeights(width, radius);
  const down = axisWeights(height, radius);
  const cells = [{ east: 0, south: 0 }, ...neighbours];
  return neighbours.map((cell) => {
    const [column, columns] = reached(cell.east, width, radius);
    const [row, rows] = reached(cell.south, height, radius);
    const weights = new Float32Array(columns * rows);
    let at = 0;
    for (let y = row; y < row + rows; y++)
      for (let x = column; x < column + columns; x++) {
        let sum = 0;
        for (const { east, south } of cells) sum += across[east + 1][x] * down[south + 1][y];
        weights[at++] = (across[cell.east + 1][x] * down[cell.south + 1][y]) / sum;
      }
    return { box: { column, row, width: columns, height: rows }, weights };
  });
}

/** Returns the weights of the cell before, of the own cell and of the cell after it, for each pixel of a row or column. */
function axisWeights(
  length: number,
  radius: number,
): [before: Float64Array, own: Float64Array, after: Float64Array] {
  const before = Float64Array.from({ length }, (_, at) => Math.max(0, radius - at - 0.5) / (2 * radius));
  const after = before.slice().reverse();
  return [before, before.map((weight, at) => 1 - weight - after[at]), after];
}

/** The pixels of a row or column that a cell reaches. */
function reached(offset: number, length: number, radius: number): [from: number, count: number] {
  if (offset === 0) return [0, length];
  return offset < 0 ? [0, radius] : [length - radius, radius];
}
