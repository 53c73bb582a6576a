/** The tiles around a tile, on any node. */
import { gridByName, type PixelGrid } from '../../grid/index.js';
import { and, createSearch, type TileFinder } from '../../query/index.js';
import type { TileRecord } from '../../storage/index.js';

export interface NeighbourTile {
  tile: TileRecord;
  /** Cells from the tile to this one, to the east and to the south. */
  east: number;
  south: number;
}

export interface NeighbourTiles {
  tiles: NeighbourTile[];
  /** Number of slots for which no node answered: their tiles may be missing. */
  unanswered: number;
}

/** Maximum number of tiles of a search: a cell can have several tiles of a derived source. */
const MAX_TILES = 1000;

/**
 * Returns the tiles of the same scene and source in the cells within `reach` pixels of a tile of this size, ordered by geocode. The cells
 * on the other side of the antimeridian count, too.
 */
export async function findNeighbourTiles(
  finder: TileFinder,
  { collection, scene, source, grid: name, geocode }: TileRecord,
  { width, height }: PixelGrid,
  reach: number,
): Promise<NeighbourTiles> {
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
  const { tiles: found, unanswered = [] } = await finder.find(
    createSearch(
      and([
        { op: '=', property: 'collection', value: collection },
        { op: '=', property: 'scene', value: scene },
        { op: '=', property: 'source', value: source },
        { op: 'in', property: 'geocode', values },
      ]),
      { limit: MAX_TILES },
    ),
  );
  // A geocode of digits may belong to either grid. If a cell has several tiles of a derived source, the first id counts.
  const byCell = new Map(
    found
      .filter((tile) => tile.grid === name)
      .sort((a, b) => (a.id < b.id ? 1 : -1))
      .map((tile) => [tile.geocode, tile]),
  );
  const tiles = [...byCell.values()]
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
  return { tiles, unanswered: unanswered.length };
}
