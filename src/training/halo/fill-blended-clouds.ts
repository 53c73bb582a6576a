/** Fills the clouds of a tile with the pixels around it, and blends the fills of neighbouring cells near their common borders. */
import type { Tf } from '../../engines/index.js';
import type { PixelGrid } from '../../grid/index.js';
import {
  type AcquisitionFiles,
  type AcquisitionPixels,
  type PriorFit,
  readAcquisitionWindow,
} from '../data/index.js';
import { predictionFailed } from '../errors.js';
import {
  boundsOf,
  type FilledDate,
  fillablePixels,
  fillBox,
  finiteFills,
  haloWidth,
  type PixelBox,
} from '../inference/index.js';
import type { ModelSpec } from '../models/index.js';
import { type CloudCell, cloudImages, surroundings } from './cloud-halo.js';
import { readCellPart } from './halo-cells.js';
import type { CellDates, HaloTask, LoadModel, ModelFiles, TileNeighbour } from './halo-task.js';
import { neighbourWeights } from './neighbour-blend-weights.js';
import type { PriorFits } from './prior-fits.js';

/** The fills of two cells are blended within this number of pixels of their border, or half of the tile if it is smaller. */
const BLEND_RADIUS = 16;

/** The cloudy pixels that a cell fills: all of the tile for its own cell, those near the border for a neighbour. */
interface Filler {
  model: ModelFiles;
  fit: PriorFit;
  scenes: string[];
  /** Smallest box around these pixels, and 1 for each of them. */
  box: PixelBox;
  wanted: Uint8Array;
  /** The share of a neighbour, row by row. Absent for the own cell. */
  weights?: Float32Array;
}

/**
 * Returns undefined if no pixel can be filled. Neighbours that no cloud is near are not read. Throws TW_TRAIN_PREDICT.
 */
export async function fillBlendedClouds(
  tf: Tf,
  spec: ModelSpec,
  date: AcquisitionPixels,
  task: HaloTask,
  load: LoadModel,
  fits: PriorFits,
): Promise<FilledDate | undefined> {
  const { width, height } = date;
  const { halo } = task;
  const wanted = fillablePixels(spec, date);
  const own = boundsOf(wanted, date, { column: 0, row: 0, width, height });
  if (!own) return undefined;
  const fit = await fits.get(task.date, filesOf(halo.dates), spec.inputs, { width, height });
  if ('skipped' in fit) throw predictionFailed(fit.skipped);
  const { prior: scenes = [] } = halo.dates ?? {};
  const fillers: Filler[] = [
    { model: task.model, fit, scenes, box: own, wanted: crop(wanted, width, own) },
    ...(await neighbourFillers(spec, date, wanted, halo.neighbours, fits)),
  ];
  const margin = Math.min(haloWidth(spec), width, height);
  const regions = fillers.map((one) => ({ box: surroundings(date, one.box, margin), scenes: one.scenes }));
  const tile = { east: 0, south: 0, size: { width, height }, date: task.date, dates: halo.dates };
  const used = new Set(regions.flatMap((region) => region.scenes));
  const cells = [tile, ...halo.neighbours].map((cell) => cloudCell(cell, date, used));
  const images = await cloudImages(spec, date, halo.origin, cells, regions);
  const planes: Float32Array[] = spec.inputs.map(() => new Float32Array(width * height).fill(NaN));
  let alone: Float32Array[] = [];
  for (const [i, filler] of fillers.entries()) {
    const { box, model } = filler;
    const at = { ...box, column: box.column - regions[i].box.column, row: box.row - regions[i].box.row };
    const values = fillBox(tf, await load(model), spec, images[i], filler.fit, {
      box: at,
      wanted: filler.wanted,
    });
    blend(planes, alone, values, filler, width);
    if (i === 0) alone = planes.map((plane) => plane.slice());
  }
  return finiteFills(planes, wanted);
}

/** Adds the values of a filler. `own`: those of the tile's own cell. */
function blend(
  planes: Float32Array[],
  own: Float32Array[],
  values: Float32Array[],
  { box, wanted, weights }: Filler,
  width: number,
): void {
  for (let at = 0; at < wanted.length; at++) {
    if (!wanted[at]) continue;
    const to = (box.row + Math.floor(at / box.width)) * width + box.column + (at % box.width);
    if (!weights) for (const [b, plane] of planes.entries()) plane[to] = values[b][at];
    // A model with too large weights must not make holes in the tiles around its own.
    else if (values.every((plane) => Number.isFinite(plane[at])))
      for (const [b, plane] of planes.entries()) plane[to] += weights[at] * (values[b][at] - own[b][to]);
  }
}

/** The neighbours that fill clouds of the tile. If the dates of one cannot be read together, the own cell has its share. */
async function neighbourFillers(
  spec: ModelSpec,
  date: AcquisitionPixels,
  wanted: Uint8Array,
  neighbours: TileNeighbour[],
  fits: PriorFits,
): Promise<Filler[]> {
  const radius = Math.min(BLEND_RADIUS, Math.floor(Math.min(date.width, date.height) / 2));
  const blended = neighbours.filter((one) => one.model !== undefined);
  const fillers: Filler[] = [];
  for (const [n, { box: reached, weights }] of neighbourWeights(date, blended, radius).entries()) {
    const box = boundsOf(wanted, date, reached);
    if (!box) continue;
    const { model, dates, size } = blended[n];
    const fit = await fits.get(blended[n].date, filesOf(dates), spec.inputs, size);
    if ('skipped' in fit) continue;
    const inReached = { ...box, column: box.column - reached.column, row: box.row - reached.row };
    fillers.push({
      ...{ model: model!, fit, box, scenes: dates?.prior ?? [] },
      wanted: crop(wanted, date.width, box),
      weights: crop(weights, reached.width, inReached),
    });
  }
  return fillers;
}

const filesOf = (dates: CellDates | undefined): AcquisitionFiles[] =>
  (dates?.prior ?? []).map((scene) => dates!.files[scene]);

/** `tile`: the size of the tile. `used`: the scenes that are read beside those of the prior of the cell. */
function cloudCell(cell: Omit<TileNeighbour, 'model'>, tile: PixelGrid, used: Set<string>): CloudCell {
  const { date, dates = { prior: [], files: {} }, size } = cell;
  const scenes = Object.keys(dates.files).filter((scene) => used.has(scene) || dates.prior.includes(scene));
  const readAt = (files: AcquisitionFiles, part: PixelBox) =>
    readCellPart(cell, tile, part, (window) => readAcquisitionWindow(files, size, window));
  return {
    ...cell,
    prior: dates.prior,
    read: async (part) => {
      const others = new Map<string, AcquisitionPixels>();
      for (const scene of scenes) others.set(scene, await readAt(dates.files[scene], part));
      return { date: await readAt(date, part), others };
    },
  };
}

function crop<T extends Float32Array | Uint8Array>(plane: T, width: number, box: PixelBox): T {
  const out = plane.slice(0, box.width * box.height) as T;
  for (let row = 0; row < box.height; row++) {
    const from = (box.row + row) * width + box.column;
    out.set(plane.subarray(from, from + box.width), row * box.width);
  }
  return out;
}
