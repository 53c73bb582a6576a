/** Surrounds the pixels of a tile with those of its neighbours. */
import type { Window } from '../../raster/index.js';
import { type AcquisitionPixels, mappableMask } from '../data/index.js';
import type { HaloImage } from '../inference/index.js';
import type { BandName } from '../models/index.js';
import {
  type CellPlanes,
  cellPart,
  copyPlanes,
  type HaloCell,
  mirrorMissing,
  readCellPart,
} from './halo-cells.js';

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
  copyPlanes(image, image.tile, planesOf(tile, names));
  for (const neighbour of neighbours) {
    const box = cellPart(image, neighbour);
    const part = { ...box, column: box.column - halo, row: box.row - halo };
    copyPlanes(image, box, planesOf(await readCellPart(neighbour, tile, part, neighbour.read), names));
  }
  mirrorMissing(image, neighbours);
  return image;
}

const planesOf = (pixels: AcquisitionPixels, names: readonly BandName[]): CellPlanes => ({
  planes: names.map((name) => pixels.bands[name]!),
  mask: mappableMask(pixels, names),
});
