/**
 * Fills clouds of a part of a scene by the model and the prior of one cell. A filled value depends only on its position in the grid, on the
 * cell, and on the pixels around it, so two tiles that fill the same pixel by the same cell get the same value.
 */
import type { LayersModel } from '@tensorflow/tfjs-layers';
import type { Tf } from '../../engines/index.js';
import type { PixelGrid } from '../../grid/index.js';
import { applyPriorFit, composeCloudInputs, type PriorFit } from '../data/index.js';
import type { ModelSpec } from '../models/index.js';
import { fillMaskedPixels } from './halo-fill-masked.js';
import type { HaloImage, PixelBox } from './halo-image.js';
import { predictAround } from './halo-prediction.js';

/** Side of the squares that a model is applied to. Small squares leave out more of the clear ground between clouds. */
const SQUARE = 160;

/**
 * Fills the pixels of `wanted` within a box of an image, whose `inputs` are the bands, nearest clear values and medians, as many of each,
 * and cloud. Returns one plane of the box for each band, NaN elsewhere. `fit`: that of the cell. Models of older versions read no prior.
 */
export function fillBox(
  tf: Tf,
  model: LayersModel,
  spec: ModelSpec,
  image: HaloImage,
  fit: PriorFit,
  { box, wanted }: { box: PixelBox; wanted: Uint8Array },
): Float32Array[] {
  const count = spec.inputs.length;
  const read = readsPrior(model, spec) ? withPrior(image, count, fit) : withoutPrior(image, count);
  const filled = spec.inputs.map(() => new Float32Array(wanted.length).fill(NaN));
  for (let row = 0; row < box.height; row += SQUARE)
    for (let column = 0; column < box.width; column += SQUARE) {
      const square = boundsOf(wanted, box, { column, row, width: SQUARE, height: SQUARE });
      if (!square) continue;
      const part = { ...square, column: box.column + square.column, row: box.row + square.row };
      const planes = predictAround(tf, model, spec, read, part);
      for (let y = 0; y < square.height; y++)
        for (let x = 0; x < square.width; x++) {
          const to = (square.row + y) * box.width + square.column + x;
          if (!wanted[to]) continue;
          for (const [b, plane] of planes.entries()) filled[b][to] = plane[y * square.width + x];
        }
    }
  return filled;
}

/** False for models of older versions, which read only the date itself. */
export const readsPrior = (model: LayersModel, { inputs }: ModelSpec): boolean =>
  model.inputs[0].shape.at(-1) !== inputs.length;

/** Pixels without data are replaced like clouds, so that they do not depend on the part of the scene that a tile reads. */
function withPrior(image: HaloImage, count: number, fit: PriorFit): HaloImage {
  const [own, nearest, median] = [0, 1, 2].map((kind) =>
    image.inputs.slice(kind * count, (kind + 1) * count),
  );
  const cloud = image.inputMask.map((is, at) => (is && image.inputs[3 * count][at] === 0 ? 0 : 1));
  return { ...image, inputs: composeCloudInputs(own, applyPriorFit({ nearest, median }, fit), cloud) };
}

const withoutPrior = (image: HaloImage, count: number): HaloImage =>
  fillMaskedPixels({ ...image, inputs: image.inputs.slice(0, count) });

/** Returns the smallest rectangle around the pixels of a mask within `box`, or undefined if there are none. */
export function boundsOf(
  mask: Uint8Array,
  { width, height }: PixelGrid,
  box: PixelBox,
): PixelBox | undefined {
  let [west, north, east, south] = [width, height, -1, -1];
  for (let row = box.row; row < Math.min(height, box.row + box.height); row++)
    for (let column = box.column; column < Math.min(width, box.column + box.width); column++) {
      if (!mask[row * width + column]) continue;
      west = Math.min(west, column);
      east = Math.max(east, column);
      north = Math.min(north, row);
      south = row;
    }
  if (east < 0) return undefined;
  return { column: west, row: north, width: east - west + 1, height: south - north + 1 };
}
