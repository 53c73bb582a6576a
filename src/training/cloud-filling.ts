/** Replaces the cloudy pixels of a date with the predictions of a model. */
import type { LayersModel } from '@tensorflow/tfjs-layers';
import type { Tf } from '../engines/index.js';
import type { PixelGrid } from '../grid/index.js';
import { type AcquisitionPixels, inputMaskOf, isCloudy } from './acquisitions.js';
import type { HaloImage, PixelBox } from './halo.js';
import { fillMaskedPixels, predictAround } from './halo-prediction.js';
import type { ModelSpec } from './models/spec.js';
import { applyPriorFit, cloudInputs, composeCloudInputs, type PriorFit } from './prior.js';
import { predictImage } from './windows.js';

/** Side of the squares that a model is applied to. Small squares leave out more of the clear ground between clouds. */
const SQUARE_SIDE_PX = 160;

/**
 * Fills the pixels of `wanted` within a box of an image, whose `inputs` are the bands, nearest clear values and medians, as many of each,
 * and cloud. A filled value depends only on its position in the grid, on the cell, and on the pixels around it, so two tiles that fill the
 * same pixel by the same cell get the same value. Returns one plane of the box for each band, NaN elsewhere. `fit`: that of the cell.
 * Models of older versions read no prior.
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
  for (let row = 0; row < box.height; row += SQUARE_SIDE_PX)
    for (let column = 0; column < box.width; column += SQUARE_SIDE_PX) {
      const square = boundsOf(wanted, box, { column, row, width: SQUARE_SIDE_PX, height: SQUARE_SIDE_PX });
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
const readsPrior = (model: LayersModel, { inputs }: ModelSpec): boolean =>
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

export interface FilledDate {
  /** Reflectances, one plane for each input band, that replace those of the date where `filled` is 1. */
  planes: Float32Array[];
  filled: Uint8Array;
}

/**
 * Fills the pixels with cloud or shadow. The prior of the model is adjusted to the clear pixels of the date, so that fills meet them
 * without a seam; a correction by the clear pixels at the edge of a cloud would add the haze that masks miss there. `others`: the dates
 * of the prior. Returns undefined if no pixel can be filled.
 */
export function fillClouds(
  tf: Tf,
  model: LayersModel,
  spec: ModelSpec,
  date: AcquisitionPixels,
  others: AcquisitionPixels[],
): FilledDate | undefined {
  const { width, height } = date;
  const inputMask = inputMaskOf(spec, date);
  const wanted = fillablePixels(spec, date);
  if (!wanted.includes(1)) return undefined;
  const own = spec.inputs.map((name) => date.bands[name]!);
  const inputs = readsPrior(model, spec) ? cloudInputs(date, others, spec.inputs, wanted) : own;
  const planes = predictImage(tf, model, spec, { width, height, inputs, inputMask }, wanted);
  return finiteFills(planes, wanted);
}

/** 1 where there is cloud or shadow and the model may read the date. */
export function fillablePixels(spec: ModelSpec, date: AcquisitionPixels): Uint8Array {
  const inputMask = inputMaskOf(spec, date);
  return date.mask.map((code, at) => (isCloudy(code) && inputMask[at] ? 1 : 0));
}

/** Returns the fills of the wanted pixels whose values are finite; undefined if there are none. */
export function finiteFills(planes: Float32Array[], wanted: Uint8Array): FilledDate | undefined {
  const filled = wanted.map((is, at) => (is && planes.every((plane) => Number.isFinite(plane[at])) ? 1 : 0));
  return filled.includes(1) ? { planes, filled } : undefined;
}
