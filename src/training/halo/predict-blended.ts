/** Predicts a tile with the pixels around it, and blends the models of neighbouring cells near their common borders. */
import type { Tf } from '../../engines/index.js';
import type { Window } from '../../raster/index.js';
import { type AcquisitionPixels, readAcquisitionWindow } from '../data/index.js';
import { boxPredictor, haloWidth } from '../inference/index.js';
import type { ModelSpec } from '../models/index.js';
import type { HaloTask, LoadModel } from './halo-task.js';
import { neighbourWeights } from './neighbour-blend-weights.js';
import { tileWithHalo } from './tile-halo.js';

/**
 * Models are blended within this number of pixels of a border, or half of the tile if it is smaller. Maps of patch means are smooth, so
 * that a narrower blend would be visible in them.
 */
const BLEND_RADIUS = { mean: 48, map: 16 };

/** Returns the blended prediction of the pixels of a tile. */
export async function predictBlended(
  tf: Tf,
  spec: ModelSpec,
  pixels: AcquisitionPixels,
  { model, halo }: Pick<HaloTask, 'model' | 'halo'>,
  load: LoadModel,
): Promise<Float32Array> {
  const { width, height } = pixels;
  const kind = spec.target.kind === 'mean' ? 'mean' : 'map';
  const neighbours = halo.neighbours.map((one) => ({
    ...one,
    read: (window: Window) => readAcquisitionWindow(one.date, one.size, window),
  }));
  const image = await tileWithHalo(pixels, neighbours, {
    width: Math.min(haloWidth(spec), width, height),
    origin: halo.origin,
    inputs: spec.inputs,
  });
  const predict = boxPredictor(tf, spec, image);
  const plane = predict(await load(model), image.tile);
  const blended = halo.neighbours.filter((one) => one.model !== undefined);
  const radius = Math.min(BLEND_RADIUS[kind], Math.floor(Math.min(width, height) / 2));
  const own = plane.slice();
  for (const [n, { box, weights }] of neighbourWeights(pixels, blended, radius).entries()) {
    const other = blended[n].model!;
    if (other.topology.path === model.topology.path) continue;
    const { column, row } = image.tile;
    const values = predict(await load(other), { ...box, column: column + box.column, row: row + box.row });
    for (let at = 0; at < values.length; at++) {
      // A model with too large weights must not make holes in the tiles around its own.
      if (!Number.isFinite(values[at])) continue;
      const to = (box.row + Math.floor(at / box.width)) * width + box.column + (at % box.width);
      plane[to] += weights[at] * (values[at] - own[to]);
    }
  }
  return plane;
}
