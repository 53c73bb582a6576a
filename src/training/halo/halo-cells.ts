/** The nine cells of an image with a halo: their parts of the image, their pixels, and mirrored pixels in place of missing cells. */
import type { PixelGrid } from '../../grid/index.js';
import type { Window } from '../../raster/index.js';
import type { AcquisitionPixels } from '../data/index.js';
import { intersection, type PixelBox } from '../inference/index.js';
import type { CellOffset } from './neighbour-blend-weights.js';

/** A cell of the image. */
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
