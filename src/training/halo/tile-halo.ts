/** Surrounds the pixels of a tile with those of its neighbours. */
import type { Window } from '../../raster/index.js';
import { type AcquisitionPixels, mappableMask } from '../data/index.js';
import type { HaloImage, PixelBox } from '../inference/index.js';
import type { BandName } from '../models/index.js';
import { cellPart, type HaloCell, mirrorMissing, readCellPart } from './halo-cells.js';

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
  copyPixels(image, image.tile, tile, names);
  for (const neighbour of neighbours) {
    const box = cellPart(image, neighbour);
    const part = { ...box, column: box.column - halo, row: box.row - halo };
    copyPixels(image, box, await readCellPart(neighbour, tile, part, neighbour.read), names);
  }
  mirrorMissing(image, neighbours);
  return image;
}

function copyPixels(
  { width, inputs, inputMask }: HaloImage,
  box: PixelBox,
  pixels: AcquisitionPixels,
  names: readonly BandName[],
): void {
  const mask = mappableMask(pixels, names);
  for (let row = 0; row < box.height; row++) {
    const [from, to] = [row * box.width, (box.row + row) * width + box.column];
    inputMask.set(mask.subarray(from, from + box.width), to);
    for (const [b, name] of names.entries())
      inputs[b].set(pixels.bands[name]!.subarray(from, from + box.width), to);
  }
}
