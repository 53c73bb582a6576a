/** Fills the clouds of a tile with the pixels around it, and blends the fills of neighbouring cells near their common borders. */

import type { Tf } from '../engines/index.js';
import type { PixelGrid } from '../grid/index.js';
import {
  type AcquisitionFiles,
  type AcquisitionPixels,
  inputMaskOf,
  isCloudy,
  readAcquisitionWindow,
} from './acquisitions.js';
import { boundsOf, type FilledDate, fillablePixels, fillBox, finiteFills } from './cloud-filling.js';
import { predictionFailed } from './errors.js';
import {
  type CellDates,
  type CellPlanes,
  cellPart,
  copyPlanes,
  cropPixels,
  type HaloCell,
  type HaloImage,
  type HaloTask,
  intersection,
  type LoadModel,
  type ModelFiles,
  mirrorMissing,
  neighbourWeights,
  type PixelBox,
  readCellPart,
  type TileNeighbour,
} from './halo.js';
import { type ModelSpec, receptiveField } from './models/spec.js';
import { type PriorFit, type PriorFits, type PriorValues, priorValues } from './prior.js';

/**
 * A part of the surroundings of a tile, and the scenes of its prior, the nearest in time first. Each cell has its own list of scenes; the
 * list of a cell applies to the pixels of all cells, so that the values do not change at a border.
 */
interface CloudRegion {
  /** Counted from the north-western pixel of the tile. */
  box: PixelBox;
  scenes: readonly string[];
}

/** The tile or one of the cells around it. */
export interface CloudCell extends HaloCell {
  /** Scenes of its own prior, the nearest in time first. */
  prior: readonly string[];
  /** Reads a part at the pixels of the tile. Its position is counted from the north-western pixel of the tile. */
  read(part: PixelBox): Promise<CloudCellPixels>;
}

interface CloudCellPixels {
  date: AcquisitionPixels;
  /** The other scenes that the cell has. */
  others: ReadonlyMap<string, AcquisitionPixels>;
}

/**
 * Returns an image of each region, as `fillBox` reads it. Cells beyond all regions are not read. If a cell is missing, the image is
 * mirrored at its border.
 */
export async function cloudImages(
  spec: ModelSpec,
  { width, height }: PixelGrid,
  origin: HaloImage['origin'],
  cells: readonly CloudCell[],
  regions: readonly CloudRegion[],
): Promise<HaloImage[]> {
  const images = regions.map(({ box }): HaloImage => {
    const size = box.width * box.height;
    return {
      ...{ width: box.width, height: box.height, origin },
      tile: { column: -box.column, row: -box.row, width, height },
      inputs: Array.from({ length: 3 * spec.inputs.length + 1 }, () => new Float32Array(size).fill(NaN)),
      inputMask: new Uint8Array(size),
    };
  });
  for (const cell of cells) {
    const parts = images.map((image) => cellPart(image, cell));
    // The same parts, counted from the tile.
    const placed = parts.map((part, i) => ({
      ...part,
      column: part.column + regions[i].box.column,
      row: part.row + regions[i].box.row,
    }));
    const whole = enclosing(placed.filter(isNotEmpty));
    if (!whole) continue;
    const pixels = await cell.read(whole);
    for (const [i, part] of parts.entries()) {
      if (!isNotEmpty(part)) continue;
      const box = {
        ...part,
        column: placed[i].column - whole.column,
        row: placed[i].row - whole.row,
      };
      copyPlanes(images[i], part, planesOf(spec, cropCell(pixels, box), regions[i].scenes, cell.prior));
    }
  }
  for (const image of images) mirrorMissing(image, cells);
  return images;
}

/** Pixels that are clear in none of the scenes have the values of the prior of their own cell. */
function planesOf(
  spec: ModelSpec,
  { date, others }: CloudCellPixels,
  scenes: readonly string[],
  own: readonly string[],
): CellPlanes {
  const valuesOf = (names: readonly string[]) =>
    priorValues(
      date,
      names.flatMap((name) => others.get(name) ?? []),
      spec.inputs,
    );
  const values = valuesOf(scenes);
  if (scenes.join('\n') !== own.join('\n')) fillUnknown(values, valuesOf(own));
  const bands = spec.inputs.map((name) => date.bands[name]!);
  const cloud = Float32Array.from(date.mask, (code) => (isCloudy(code) ? 1 : 0));
  return { planes: [...bands, ...values.nearest, ...values.median, cloud], mask: inputMaskOf(spec, date) };
}

function fillUnknown(values: PriorValues, from: PriorValues): void {
  for (const kind of ['nearest', 'median'] as const)
    for (const [b, plane] of values[kind].entries())
      for (let at = 0; at < plane.length; at++) if (Number.isNaN(plane[at])) plane[at] = from[kind][b][at];
}

function cropCell({ date, others }: CloudCellPixels, box: PixelBox): CloudCellPixels {
  const cropped = [...others].map(([scene, one]) => [scene, cropPixels(one, box)] as const);
  return { date: cropPixels(date, box), others: new Map(cropped) };
}

const isNotEmpty = ({ width, height }: PixelBox): boolean => width > 0 && height > 0;

/** Returns the smallest rectangle around others; undefined if there are none. */
function enclosing(boxes: PixelBox[]): PixelBox | undefined {
  if (boxes.length === 0) return undefined;
  const column = Math.min(...boxes.map((box) => box.column));
  const row = Math.min(...boxes.map((box) => box.row));
  const east = Math.max(...boxes.map((box) => box.column + box.width));
  const south = Math.max(...boxes.map((box) => box.row + box.height));
  return { column, row, width: east - column, height: south - row };
}

/** Returns the pixels within `margin` of a box, within the tile and its halo of the same width. */
function surroundings({ width, height }: PixelGrid, box: PixelBox, margin: number): PixelBox {
  return intersection(grown(box, margin), grown({ column: 0, row: 0, width, height }, margin));
}

const grown = ({ column, row, width, height }: PixelBox, by: number): PixelBox => ({
  ...{ column: column - by, row: row - by },
  ...{ width: width + 2 * by, height: height + 2 * by },
});

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
  const margin = Math.min(receptiveField(spec), width, height);
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
