/**
 * The pixels around the clouds of a tile, with the clear values of other dates. Each cell has its own list of scenes for these values; the
 * list of a cell applies to the pixels of all cells, so that the values do not change at a border.
 */
import type { PixelGrid } from '../../grid/index.js';
import {
  type AcquisitionPixels,
  inputMaskOf,
  isCloudy,
  type PriorValues,
  priorValues,
} from '../data/index.js';
import { type HaloImage, intersection, type PixelBox } from '../inference/index.js';
import type { ModelSpec } from '../models/index.js';
import {
  type CellPlanes,
  cellPart,
  copyPlanes,
  cropPixels,
  type HaloCell,
  mirrorMissing,
} from './halo-cells.js';

/** A part of the surroundings of a tile, and the scenes of its prior, the nearest in time first. */
export interface CloudRegion {
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

export interface CloudCellPixels {
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
export function surroundings({ width, height }: PixelGrid, box: PixelBox, margin: number): PixelBox {
  return intersection(grown(box, margin), grown({ column: 0, row: 0, width, height }, margin));
}

const grown = ({ column, row, width, height }: PixelBox, by: number): PixelBox => ({
  ...{ column: column - by, row: row - by },
  ...{ width: width + 2 * by, height: height + 2 * by },
});
