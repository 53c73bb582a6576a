/** Replaces the masked pixels of an image, which a network of convolutions reads too. */
import { type HaloImage, latticeOffset, type PixelBox } from './halo-image.js';

/** Side of the squares. A tile sees all of a square at its border, because its halo is wider than this less one. */
const SQUARE = 32;

/**
 * Replaces each masked pixel by the mean of the readable pixels of its square, or of the image if the square has none. Squares lie on one
 * lattice for all tiles. An image without a readable pixel is not changed.
 */
export function fillMaskedPixels(image: HaloImage): HaloImage {
  return { ...image, inputs: image.inputs.map((plane) => fillPlane(image, plane)) };
}

function fillPlane(image: HaloImage, plane: Float32Array): Float32Array {
  const { width, height, inputMask } = image;
  const filled = plane.slice();
  let meanOfImage: number | undefined;
  for (const square of squaresOf(image)) {
    const { mean, masked } = readablePixels(image, plane, square);
    if (masked === 0) continue;
    meanOfImage ??= readablePixels(image, plane, { column: 0, row: 0, width, height }).mean;
    const value = Number.isNaN(mean) ? meanOfImage : mean;
    for (let row = square.row; row < square.row + square.height; row++)
      for (let at = row * width + square.column, end = at + square.width; at < end; at++)
        if (!inputMask[at]) filled[at] = value;
  }
  return filled;
}

function squaresOf(image: HaloImage): PixelBox[] {
  const offset = latticeOffset(image);
  const columns = spansOf(image.width, offset.column);
  return spansOf(image.height, offset.row).flatMap(([row, height]) =>
    columns.map(([column, width]) => ({ column, row, width, height })),
  );
}

/** Divides a row or column at the multiples of the side of a square in the grid. */
function spansOf(length: number, offset: number): [from: number, count: number][] {
  const spans: [number, number][] = [];
  for (let at = Math.floor(offset / SQUARE) * SQUARE - offset; at < length; at += SQUARE) {
    const from = Math.max(0, at);
    spans.push([from, Math.min(length, at + SQUARE) - from]);
  }
  return spans;
}

/** `mean` is NaN if all pixels are masked. */
function readablePixels({ width, inputMask }: HaloImage, plane: Float32Array, box: PixelBox) {
  let sum = 0;
  let count = 0;
  for (let row = box.row; row < box.row + box.height; row++)
    for (let at = row * width + box.column, end = at + box.width; at < end; at++) {
      if (!inputMask[at]) continue;
      sum += plane[at];
      count++;
    }
  return { mean: sum / count, masked: box.width * box.height - count };
}
