/**
 * Applies a model to a part of an image with a halo. The prediction of a pixel depends only on its position in the grid and on the pixels
 * around it, so two tiles that predict the same pixel by the same model get the same value.
 */

import type { LayersModel } from '@tensorflow/tfjs-layers';
import type { Tf } from '../engines/index.js';
import { runModel } from './batches.js';
import { type HaloImage, latticeOffset, type PixelBox } from './halo.js';
import { fillHistory } from './history.js';
import { type ModelSpec, poolingFactor, RECEPTIVE_MARGIN } from './models/spec.js';
import { clamp, holdsAny, latticeWindows, predictWindows } from './windows.js';

/** Side of the squares. A tile sees all of a square at its border, because its halo is wider than this less one. */
const SQUARE_SIDE_PX = 32;

/**
 * Replaces each masked pixel by the mean of the readable pixels of its square, or of the image if the square has none. Squares lie on one
 * lattice for all tiles. An image without a readable pixel is not changed. Convolutions read the masked pixels too.
 */
export function fillMaskedPixels(image: HaloImage): HaloImage {
  const { inputs, history = inputs.length } = image;
  const bands = inputs.slice(0, history).map((plane) => fillPlane(image, plane));
  const planes = inputs.slice(history).map((plane) => plane.slice());
  if (planes.length > 0) fillHistory(planes, false);
  return { ...image, inputs: [...bands, ...planes] };
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
  for (
    let at = Math.floor(offset / SQUARE_SIDE_PX) * SQUARE_SIDE_PX - offset;
    at < length;
    at += SQUARE_SIDE_PX
  ) {
    const from = Math.max(0, at);
    spans.push([from, Math.min(length, at + SQUARE_SIDE_PX) - from]);
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

/** Maximum number of pixels in one call of a model for maps, the margin included. */
const MAX_MAP_PIXELS = 2 ** 18;

/** Predicts the pixels of a part of an image. NaN marks pixels that no window with a readable pixel covers. */
type BoxPredictor = (model: LayersModel, box: PixelBox) => Float32Array;

/** Returns a function that applies models with one output plane to parts of the tile of an image. */
export function boxPredictor(tf: Tf, spec: ModelSpec, image: HaloImage): BoxPredictor {
  if (spec.target.kind === 'mean') return (model, box) => predictMeans(tf, model, spec, image, box);
  const filled = fillMaskedPixels(image);
  return (model, box) => predictMap(tf, model, spec, filled, box);
}

/** A model for means predicts one value for each window; the windows lie on one lattice for all tiles. */
function predictMeans(
  tf: Tf,
  model: LayersModel,
  spec: ModelSpec,
  image: HaloImage,
  box: PixelBox,
): Float32Array {
  const { patchSize } = spec;
  const origins = latticeWindows(box, patchSize, patchSize / 2, latticeOffset(image)).filter((origin) =>
    holdsAny(image.inputMask, image, { ...origin, width: patchSize, height: patchSize }),
  );
  const [plane] = predictWindows(tf, model, spec, image, { origins, size: patchSize, box });
  return plane;
}

/**
 * A network of convolutions predicts all pixels of a rectangle at once. A margin is cut off, whose values depend on the edge of the
 * rectangle (the overlap-tile strategy, Ronneberger 2015, section 2). The rectangles begin at multiples of the pooling factor in the grid.
 */
function predictMap(
  tf: Tf,
  model: LayersModel,
  spec: ModelSpec,
  image: HaloImage,
  box: PixelBox,
): Float32Array {
  const out = new Float32Array(box.width * box.height).fill(NaN);
  const factor = poolingFactor(spec);
  const side = Math.floor(Math.sqrt(MAX_MAP_PIXELS)) - 2 * (RECEPTIVE_MARGIN + factor);
  const rows = Math.ceil(box.height / Math.ceil(box.height / side));
  const columns = Math.ceil(box.width / Math.ceil(box.width / side));
  for (let row = 0; row < box.height; row += rows)
    for (let column = 0; column < box.width; column += columns) {
      const part = {
        column: box.column + column,
        row: box.row + row,
        width: Math.min(columns, box.width - column),
        height: Math.min(rows, box.height - row),
      };
      if (!holdsAny(image.inputMask, image, part)) continue;
      const [values] = predictAround(tf, model, spec, image, part);
      for (let y = 0; y < part.height; y++)
        out.set(values.subarray(y * part.width, (y + 1) * part.width), (row + y) * box.width + column);
    }
  return out;
}

/** Applies a network of convolutions to a part of an image and to the pixels around it. Returns one plane of the part for each output. */
export function predictAround(
  tf: Tf,
  model: LayersModel,
  spec: ModelSpec,
  image: HaloImage,
  part: PixelBox,
): Float32Array[] {
  const read = alignedBox(part, RECEPTIVE_MARGIN, poolingFactor(spec), latticeOffset(image));
  const values = runOnBox(tf, model, image, read);
  const count = values.length / (read.width * read.height);
  return Array.from({ length: count }, (_, output) => {
    const plane = new Float32Array(part.width * part.height);
    for (let y = 0, to = 0; y < part.height; y++) {
      const from = (part.row - read.row + y) * read.width + part.column - read.column;
      for (let x = 0; x < part.width; x++) plane[to++] = values[(from + x) * count + output];
    }
    return plane;
  });
}

/** Returns a box with a margin around `box`, whose edges are multiples of `factor` in the grid. */
function alignedBox(
  { column, row, width, height }: PixelBox,
  margin: number,
  factor: number,
  offset: { column: number; row: number },
): PixelBox {
  const span = (from: number, count: number, shift: number): [from: number, count: number] => {
    const start = Math.floor((from + shift - margin) / factor) * factor;
    const end = Math.ceil((from + shift + count + margin) / factor) * factor;
    return [start - shift, end - start];
  };
  const [left, across] = span(column, width, offset.column);
  const [top, down] = span(row, height, offset.row);
  return { column: left, row: top, width: across, height: down };
}

/** Pixels outside of the image are those of its edge. */
function runOnBox(tf: Tf, model: LayersModel, image: HaloImage, box: PixelBox): Float32Array {
  const { inputs, width, height } = image;
  const bands = inputs.length;
  const values = new Float32Array(box.width * box.height * bands);
  const columns = Array.from({ length: box.width }, (_, x) => clamp(box.column + x, width));
  let to = 0;
  for (let y = 0; y < box.height; y++) {
    const start = clamp(box.row + y, height) * width;
    for (const column of columns) for (const plane of inputs) values[to++] = plane[start + column];
  }
  const input = tf.tensor4d(values, [1, box.height, box.width, bands]);
  try {
    return runModel(tf, model, input);
  } finally {
    input.dispose();
  }
}
