/** The halo of a tile: a margin of pixels from its neighbours, and the weights of the models of the neighbours near their borders. */

import type { LayersModel } from '@tensorflow/tfjs-layers';
import type { PixelGrid } from '../grid/index.js';
import type { Window } from '../raster/index.js';
import type { ModelFileLocation } from '../storage/index.js';
import { type AcquisitionFiles, type AcquisitionPixels, mappableMask } from './acquisitions.js';
import type { BandName } from './models/spec.js';

/** A rectangle of pixels. */
export interface PixelBox {
  column: number;
  row: number;
  width: number;
  height: number;
}

/** Invariant: the pixels within `tile` are those of the tile, and all planes have the size of the image. */
export interface HaloImage {
  width: number;
  height: number;
  /** The tile within the image. */
  tile: PixelBox;
  /**
   * Column and row of the north-western pixel of the tile among all pixels of its grid, so that the images of neighbouring tiles divide
   * their common pixels in the same way.
   */
  origin: { column: number; row: number };
  /** One plane for each input of the model. */
  inputs: Float32Array[];
  /** 1 where the model may read the inputs. */
  inputMask: Uint8Array;
  /** Number of the first plane of the history among the inputs. Absent if the model reads none. */
  history?: number;
}

/** Returns the position of the north-western pixel of the image among all pixels of its grid. */
export const latticeOffset = ({ origin, tile }: HaloImage): { column: number; row: number } => ({
  column: origin.column - tile.column,
  row: origin.row - tile.row,
});

/** Returns the common part of two rectangles, whose width or height is 0 if there is none. */
export function intersection(a: PixelBox, b: PixelBox): PixelBox {
  const column = Math.max(a.column, b.column);
  const row = Math.max(a.row, b.row);
  return {
    ...{ column, row },
    width: Math.max(0, Math.min(a.column + a.width, b.column + b.width) - column),
    height: Math.max(0, Math.min(a.row + a.height, b.row + b.height) - row),
  };
}

/** One of the nine cells of an image with a halo: the cell of the tile, or a cell around it. */
export interface HaloCell extends CellOffset {
  /** Size of the whole cell in pixels, which can differ from that of the tile. */
  size: PixelGrid;
}

/** Planes of an image of any part of the nine cells. `tile` can extend beyond the image. */
interface CellsImage extends PixelGrid {
  tile: PixelBox;
  inputs: Float32Array[];
  inputMask: Uint8Array;
}

/** Returns the part of an image that belongs to a cell. It can be empty. */
export function cellPart(
  { width, height, tile }: Pick<CellsImage, 'width' | 'height' | 'tile'>,
  { east, south }: CellOffset,
): PixelBox {
  const cell = { ...tile, column: tile.column + east * tile.width, row: tile.row + south * tile.height };
  return intersection(cell, { column: 0, row: 0, width, height });
}

/**
 * Reads a part of a cell, whose position is counted from the north-western pixel of the tile. Its pixels are resampled to those of the tile
 * by nearest neighbour.
 */
export async function readCellPart(
  { east, south, size }: HaloCell,
  tile: PixelGrid,
  part: PixelBox,
  read: (window: Window) => Promise<AcquisitionPixels>,
): Promise<AcquisitionPixels> {
  const columns = nearest(part.column - east * tile.width, part.width, tile.width, size.width);
  const rows = nearest(part.row - south * tile.height, part.height, tile.height, size.height);
  const [column, row] = [columns[0], rows[0]];
  const [width, height] = [columns.at(-1)! - column + 1, rows.at(-1)! - row + 1];
  const pixels = await read({ column, row, width, height });
  if (width === part.width && height === part.height) return pixels;
  return pickPixels(
    pixels,
    columns.map((at) => at - column),
    rows.map((at) => at - row),
  );
}

/** Returns a part of the pixels of a date. */
export function cropPixels(date: AcquisitionPixels, { column, row, width, height }: PixelBox) {
  if (width === date.width && height === date.height) return date;
  const from = (start: number, count: number) => Array.from({ length: count }, (_, at) => start + at);
  return pickPixels(date, from(column, width), from(row, height));
}

function pickPixels(date: AcquisitionPixels, columns: number[], rows: number[]): AcquisitionPixels {
  const pick = <T extends Float32Array | Uint8Array>(plane: T, to: T): T => {
    let at = 0;
    for (const row of rows) for (const column of columns) to[at++] = plane[row * date.width + column];
    return to;
  };
  const size = columns.length * rows.length;
  return {
    time: date.time,
    end: date.end,
    width: columns.length,
    height: rows.length,
    bands: Object.fromEntries(
      Object.entries(date.bands).map(([name, plane]) => [name, pick(plane, new Float32Array(size))]),
    ),
    mask: pick(date.mask, new Uint8Array(size)),
  };
}

/** The pixels of a part of a cell. */
export interface CellPlanes {
  /** One plane for each input of the image. */
  planes: Float32Array[];
  /** 1 where the model may read them. */
  mask: Uint8Array;
}

/** Copies pixels into a part of an image that has their size. */
export function copyPlanes(
  { width, inputs, inputMask }: Omit<CellsImage, 'tile'>,
  box: PixelBox,
  { planes, mask }: CellPlanes,
): void {
  for (let row = 0; row < box.height; row++) {
    const [from, to] = [row * box.width, (box.row + row) * width + box.column];
    inputMask.set(mask.subarray(from, from + box.width), to);
    for (const [b, plane] of planes.entries()) inputs[b].set(plane.subarray(from, from + box.width), to);
  }
}

/** Pixels of a cell of `length` pixels at the centres of `count` pixels of a tile, whose cell has `own` pixels. */
function nearest(from: number, count: number, own: number, length: number): number[] {
  return Array.from({ length: count }, (_, at) =>
    Math.min(length - 1, Math.floor(((from + at + 0.5) * length) / own)),
  );
}

/** Fills the parts of missing cells with mirror images of the tile and of the cells in `present`. */
export function mirrorMissing(image: CellsImage, present: readonly CellOffset[]): void {
  const has = (east: number, south: number) =>
    (east === 0 && south === 0) || present.some((cell) => cell.east === east && cell.south === south);
  // Cells beside the tile first, because those at its corners are mirrored from them.
  for (const [east, south] of [...SIDES, ...CORNERS]) {
    if (has(east, south)) continue;
    // A corner is mirrored at the border that it shares with a neighbour.
    const isAcross = south === 0 || (east !== 0 && !has(east, 0) && has(0, south));
    mirror(image, cellPart(image, { east, south }), isAcross ? east : 0, isAcross ? 0 : south);
  }
}

const SIDES = [[-1, 0], [0, -1], [0, 1], [1, 0]] as const; // biome-ignore format: a list of pairs
const CORNERS = [[-1, -1], [-1, 1], [1, -1], [1, 1]] as const; // biome-ignore format: a list of pairs

/** Fills a part of the image with its mirror image at the western (-1) or eastern (1), or northern (-1) or southern (1) border. */
function mirror(
  { width, tile, inputs, inputMask }: CellsImage,
  box: PixelBox,
  east: number,
  south: number,
): void {
  const reflected = (at: number, direction: number, from: number, count: number) =>
    direction === 0 ? at : 2 * (direction < 0 ? from : from + count) - 1 - at;
  for (let row = box.row; row < box.row + box.height; row++)
    for (let column = box.column; column < box.column + box.width; column++) {
      const to = row * width + column;
      const from =
        reflected(row, south, tile.row, tile.height) * width +
        reflected(column, east, tile.column, tile.width);
      inputMask[to] = inputMask[from];
      for (const plane of inputs) plane[to] = plane[from];
    }
}

/** A neighbour of a tile: one of the eight cells around it. */
export interface HaloNeighbour extends HaloCell {
  /** Reads a part of its pixels. */
  read(window: Window): Promise<AcquisitionPixels>;
}

interface Halo {
  /** Width in pixels, at most the width and the height of the tile. */
  width: number;
  origin: HaloImage['origin'];
  inputs: readonly BandName[];
  /** Planes of the history of the tile. */
  history?: Float32Array[] | undefined;
}

/**
 * Returns the image of a tile with its halo. Pixels of a neighbour are resampled to those of the tile by nearest neighbour. If a neighbour
 * is missing, the image is mirrored at the border, and the history always is.
 */
export async function tileWithHalo(
  tile: AcquisitionPixels,
  neighbours: readonly HaloNeighbour[],
  { width: halo, origin, inputs: names, history }: Halo,
): Promise<HaloImage> {
  const width = tile.width + 2 * halo;
  const height = tile.height + 2 * halo;
  const image: HaloImage = {
    ...{ width, height, origin },
    tile: { column: halo, row: halo, width: tile.width, height: tile.height },
    inputs: names.map(() => new Float32Array(width * height).fill(NaN)),
    inputMask: new Uint8Array(width * height),
  };
  copyPlanes(image, image.tile, planesOf(tile, names));
  for (const neighbour of neighbours) {
    const box = cellPart(image, neighbour);
    const part = { ...box, column: box.column - halo, row: box.row - halo };
    copyPlanes(image, box, planesOf(await readCellPart(neighbour, tile, part, neighbour.read), names));
  }
  mirrorMissing(image, neighbours);
  if (history) {
    const planes = history.map(() => new Float32Array(width * height));
    const around = { ...image, inputs: planes, inputMask: new Uint8Array(width * height) };
    copyPlanes(around, image.tile, { planes: history, mask: new Uint8Array(tile.width * tile.height) });
    mirrorMissing(around, []);
    return { ...image, inputs: [...image.inputs, ...planes], history: names.length };
  }
  return image;
}

const planesOf = (pixels: AcquisitionPixels, names: readonly BandName[]): CellPlanes => ({
  planes: names.map((name) => pixels.bands[name]!),
  mask: mappableMask(pixels, names),
});

/** A cell, counted from the cell of the tile. */
interface CellOffset {
  east: number;
  south: number;
}

/** The part of a tile that a neighbour takes part in, and its weight there, row by row. */
interface NeighbourWeights {
  box: PixelBox;
  weights: Float32Array;
}

/**
 * Returns the weights of neighbours within `radius` pixels of the border of a tile, in the order of `neighbours`. The tile's own model has
 * the rest. Along an axis, the weight of a cell falls from 1 to 0 over 2 * `radius` pixels across its border; the weight of a cell is the
 * product of both axes, divided by the sum over the cells that take part. The weights of a pixel depend only on its position and on which
 * cells around it take part, so both sides of a border compute the same weights; they sum to 1.
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

export interface ModelFiles {
  topology: ModelFileLocation;
  weights: ModelFileLocation;
}

/** Returns a model that is good until the next call. */
export type LoadModel = (files: ModelFiles) => Promise<LayersModel>;

/** The other dates of a cell that cloud removal reads. */
export interface CellDates {
  /** Scenes of the prior of the cell, the nearest in time first. All have files. */
  prior: string[];
  /** Files by scene. The priors of the cells around it can have more scenes. */
  files: Record<string, AcquisitionFiles>;
}

/** A tile of the same scene in one of the eight cells around a tile. */
export interface TileNeighbour extends CellOffset {
  date: AcquisitionFiles;
  /** Size of the whole tile. */
  size: PixelGrid;
  /** The model that maps it. Absent if it cannot map the tile: the models are then not blended at their border. */
  model?: ModelFiles;
  /** For cloud removal. */
  dates?: CellDates;
}

export interface TileHalo {
  origin: HaloImage['origin'];
  neighbours: TileNeighbour[];
  /** The dates of the cell of the tile, for cloud removal. */
  dates?: CellDates;
}

/** A tile that is mapped with its surroundings. */
export interface HaloTask {
  model: ModelFiles;
  date: AcquisitionFiles;
  halo: TileHalo;
}
