/** Pixel sizes of the groups of tiles in another cell. */
import { cellSizeMetres, computePixelGrids, gridByName, type PixelGrid } from '../../grid/index.js';
import { bytesPerSample } from '../../raster/index.js';
import type { GroupRecord, TileRecord } from '../../storage/index.js';

type Cell = Pick<TileRecord, 'grid' | 'geocode'>;
type Tile = Cell & { groups: PixelGrid[] };

/** Rounds to three significant digits, as ingest does for the pixel sizes of a product. */
const nominal = (metres: number) => Number(metres.toPrecision(3));

/**
 * The pixel grid of each group in a cell. If all tiles are of the cell's grid and their pixels fit into the cell, it gets these pixels;
 * otherwise it gets pixels of the product's nominal size.
 */
export function cellSizes(cell: Cell, tiles: Tile[]): PixelGrid[] {
  const [first] = tiles;
  return (
    nestedSizes(cell, tiles) ?? computePixelGrids(gridByName(cell.grid), cell.geocode, pixelSizes(first))
  );
}

/** Bytes of all bands of a tile at these sizes of its groups. */
export function tileBytes(groups: GroupRecord[], sizes: PixelGrid[]): number {
  return groups.reduce(
    (sum, { bands, dataType }, g) =>
      sum + sizes[g].width * sizes[g].height * bands.length * bytesPerSample(dataType),
    0,
  );
}

function nestedSizes({ grid, geocode }: Cell, tiles: Tile[]): PixelGrid[] | null {
  const [first] = tiles;
  const alike = tiles.every(
    (tile) =>
      tile.grid === grid &&
      tile.geocode.length === first.geocode.length &&
      tile.groups.every(
        ({ width, height }, g) => width === first.groups[g]?.width && height === first.groups[g]?.height,
      ),
  );
  if (!alike) return null;
  const cells = gridByName(grid);
  const to = cells.cellSize(geocode.length);
  const from = cells.cellSize(first.geocode.length);
  // Exact, because sizes of cells differ by powers of two.
  const sizes = first.groups.map(({ width, height }) => ({
    width: width * (to.width / from.width),
    height: height * (to.height / from.height),
  }));
  return sizes.every(({ width, height }) => Number.isInteger(width) && Number.isInteger(height))
    ? sizes
    : null;
}

/** The pixel size of each group in metres on the ground. */
function pixelSizes({ grid, geocode, groups }: Tile): { x: number; y: number }[] {
  const ground = cellSizeMetres(gridByName(grid), geocode);
  return groups.map(({ width, height }) => ({
    x: nominal(ground.width / width),
    y: nominal(ground.height / height),
  }));
}
