/** Surrounds the pixels of a tile with those of its neighbours. */
import type { PixelGrid } from '../../grid/index.js';
import type { Window } from '../../raster/index.js';
import { type AcquisitionPixels, mappableMask } from '../data/index.js';
import type { HaloImage, PixelBox } from '../inference/index.js';
import type { BandName } from '../models/index.js';
import type { CellOffset } from './neighbour-blend-weights.js';

/** A neighbour of a tile: one of the eight cells around it. */
export interface HaloNeighbour extends CellOffset {
  /** Size of the whole cell in pixels, which can differ from that of the tile. */
  size: PixelGrid;
  /** Reads a part of its pixels. */
  read(window: Window): Promise<AcquisitionPixels>;
}

interface Halo {
  /** Width in pixels, at most the width and the height of the tile. */
  width: number;
  origin: HaloImage['origin'];
  inputs: readonly BandName[];
}

/**
 * Returns the image of a tile with its halo. Pixels of a neighbour are resampled to those of the tile by nearest neighbour. If a neighbour
 * is missing, the image is mirrored at the border.
 */
export async function tileWithHalo(
  tile: AcquisitionPixels,
  neighbours: readonly HaloNeighbour[],
  { width: halo, origin, inputs: names }: Halo,
): Promise<HaloImage> {
  const width = tile.width + 2 * halo;
  const height = tile.height + 2 * halo;
  const image: HaloImage = {
    ...{ width, height, origin },
    tile: { column: halo, row: halo, width: tile.width, height: tile.height },
    inputs: names.map(() => new Float32Array(width * height).fill(NaN)),
    inputMask: new Uint8Array(width * height),
  };
  const parts = cellsOf(image, halo);
  const copy = (pixels: AcquisitionPixels, box: PixelBox, columns: number[], rows: number[]) => {
    const mask = mappableMask(pixels, names);
    const planes = names.map((name) => pixels.bands[name]!);
    for (let y = 0; y < rows.length; y++) {
      const start = (box.row + y) * width + box.column;
      const from = rows[y] * pixels.width;
      for (let x = 0; x < columns.length; x++) {
        image.inputMask[start + x] = mask[from + columns[x]];
        for (let b = 0; b < planes.length; b++) image.inputs[b][start + x] = planes[b][from + columns[x]];
      }
    }
  };
  copy(tile, image.tile, indices(tile.width), indices(tile.height));
  for (const { east, south, size, read } of neighbours) {
    const box = parts.get(cellKey(east, south))!;
    const columns = nearest(box.column - halo - east * tile.width, box.width, tile.width, size.width);
    const rows = nearest(box.row - halo - south * tile.height, box.height, tile.height, size.height);
    const [column, row] = [columns[0], rows[0]];
    const window = { column, row, width: columns.at(-1)! - column + 1, height: rows.at(-1)! - row + 1 };
    copy(
      await read(window),
      box,
      columns.map((at) => at - column),
      rows.map((at) => at - row),
    );
  }
  mirrorMissing(image, parts, new Set(neighbours.map(({ east, south }) => cellKey(east, south))));
  return image;
}

const cellKey = (east: number, south: number): string => `${east} ${south}`;

const indices = (count: number): number[] => Array.from({ length: count }, (_, at) => at);

/** The parts of the image that belong to each of the nine cells. */
function cellsOf({ tile }: HaloImage, halo: number): Map<string, PixelBox> {
  const span = (offset: number, length: number): [from: number, count: number] =>
    offset < 0 ? [0, halo] : offset === 0 ? [halo, length] : [halo + length, halo];
  const parts = new Map<string, PixelBox>();
  for (const east of [-1, 0, 1])
    for (const south of [-1, 0, 1]) {
      const [column, width] = span(east, tile.width);
      const [row, height] = span(south, tile.height);
      parts.set(cellKey(east, south), { column, row, width, height });
    }
  return parts;
}

/** Pixels of a cell of `length` pixels at the centres of `count` pixels of a tile, whose cell has `own` pixels. */
function nearest(from: number, count: number, own: number, length: number): number[] {
  return indices(count).map((at) => Math.min(length - 1, Math.floor(((from + at + 0.5) * length) / own)));
}

/** Cells beside the tile first, because those at its corners are mirrored from them. */
function mirrorMissing(image: HaloImage, parts: Map<string, PixelBox>, present: Set<string>): void {
  const corners = [...parts.keys()].filter((key) => !key.includes('0'));
  const sides = [...parts.keys()].filter((key) => key.includes('0') && key !== cellKey(0, 0));
  for (const key of [...sides, ...corners]) {
    if (present.has(key)) continue;
    const [east, south] = key.split(' ').map(Number);
    // A corner is mirrored at the border that it shares with a neighbour.
    const isAcross =
      south === 0 || (east !== 0 && !present.has(cellKey(east, 0)) && present.has(cellKey(0, south)));
    mirror(image, parts.get(key)!, isAcross ? east : 0, isAcross ? 0 : south);
  }
}

/** Fills a part of the image with its mirror image at the western (-1) or eastern (1), or northern (-1) or southern (1) border. */
function mirror(
  { width, tile, inputs, inputMask }: HaloImage,
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
