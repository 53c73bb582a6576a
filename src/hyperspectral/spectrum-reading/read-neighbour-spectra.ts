/** The tiles around a tile, for methods that read the pixels around a pixel. */

import { findNeighbourTiles, type NeighbourTile, tilesOutOfReach } from '../../derive/index.js';
import type { TileFinder } from '../../query/index.js';
import type { Storage, TileRecord } from '../../storage/index.js';
import type { TileSpectrum } from './readable-tile-spectrum.js';
import { spectrumFile } from './readable-tile-spectrum.js';
import type { Neighbour } from './spectrum-neighbour-blocks.js';

export interface NeighbourSpectrum extends NeighbourTile {
  spectrum: TileSpectrum;
}

/** The tiles around a tile that have a spectrum with the same bands; none for a reach of 0. Throws TW_WRANGLE_OUT_OF_REACH. */
export async function findNeighbourSpectra(
  finder: TileFinder,
  tile: TileRecord,
  reach: number,
  spectrumOf: (tile: TileRecord) => TileSpectrum | undefined,
): Promise<NeighbourSpectrum[]> {
  const own = spectrumOf(tile);
  if (reach === 0 || !own) return [];
  const near = await findNeighbourTiles(finder, tile, own.group, reach);
  if (near.unanswered > 0) throw tilesOutOfReach(near.unanswered);
  return near.tiles.flatMap((one) => {
    const spectrum = spectrumOf(one.tile);
    return spectrum ? [{ ...one, spectrum }] : [];
  });
}

/** The files of the neighbours, for threads and processes. */
export function neighbourFiles(storage: Storage, around: readonly NeighbourSpectrum[]): Neighbour[] {
  return around.map(({ tile, spectrum, east, south }) => ({
    file: spectrumFile(storage, tile, spectrum),
    east,
    south,
  }));
}
