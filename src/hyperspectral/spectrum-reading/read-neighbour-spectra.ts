/** The tiles around a tile, for methods that read the pixels around a pixel. */

import { searchAllTiles } from '../../derive/index.js';
import { gridByName } from '../../grid/index.js';
import { and, type TileFinder } from '../../query/index.js';
import type { Storage, TileRecord } from '../../storage/index.js';
import type { TileSpectrum } from './readable-tile-spectrum.js';
import { spectrumFile } from './readable-tile-spectrum.js';
import type { Neighbour } from './spectrum-neighbour-blocks.js';

interface NeighbourTile {
  tile: TileRecord;
  /** Cells from the tile to this one, to the east and to the south. */
  east: number;
  south: number;
}

/**
 * Tiles of the same scene and source in the cells within `reach` pixels of a tile, on any node, ordered by geocode. The
 * cells on the other side of the antimeridian count, too. Throws TW_WRANGLE_OUT_OF_REACH.
 */
async function tilesAround(
  finder: TileFinder,
  { collection, scene, source, grid: name, geocode }: TileRecord,
  { width, height }: { width: number; height: number },
  reach: number,
): Promise<NeighbourTile[]> {
  const grid = gridByName(name);
  const { west, south, east, north } = grid.bounds(geocode);
  const cell = { width: east - west, height: north - south };
  const [x, y] = [(reach / width) * cell.width, (reach / height) * cell.height];
  const world = grid.extent.east - grid.extent.west;
  const cells = [0, world, -world].flatMap((turn) =>
    grid.cover(
      { west: west - x + turn, south: south - y, east: east + x + turn, north: north + y },
      geocode.length,
    ),
  );
  const values = [...new Set(cells)].filter((one) => one !== geocode);
  const found = await searchAllTiles(
    finder,
    and([
      { op: '=', property: 'collection', value: collection },
      { op: '=', property: 'scene', value: scene },
      { op: '=', property: 'source', value: source },
      { op: 'in', property: 'geocode', values },
    ]),
  );
  // A geocode of digits may belong to either grid. If a cell has several tiles of a derived source, the first id counts.
  const byCell = new Map(
    found
      .filter((tile) => tile.grid === name)
      .sort((a, b) => (a.id < b.id ? 1 : -1))
      .map((tile) => [tile.geocode, tile]),
  );
  return [...byCell.values()]
    .sort((a, b) => (a.geocode < b.geocode ? -1 : 1))
    .map((tile) => {
      const other = grid.bounds(tile.geocode);
      const distance = other.west - west;
      const turn = Math.abs(distance) <= world / 2 ? 0 : -Math.sign(distance) * world;
      return {
        tile,
        east: Math.round((distance + turn) / cell.width),
        south: Math.round((north - other.north) / cell.height),
      };
    });
}

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
  const near = await tilesAround(finder, tile, own.group, reach);
  return near.flatMap((one) => {
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
