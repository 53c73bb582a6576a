/** How many pixels the groups of tiles have in another cell. */
import { cellSizeMetres, computePixelGrids, gridByName, type PixelGrid } from '../../grid/index.js';
import { bytesPerSample } from '../../raster/index.js';
import type { GroupRecord, TileRecord } from '../../storage/index.js';

type Cell = Pick<TileRecord, 'grid' | 'geocode'>;
type Tile = Cell & { groups: PixelGrid[] };

/** To three significant digits, as ingest takes the pixel sizes of a product. */
const nominal = (metres: number) => Number(metres.toPrecision(3));

/**
 * Pixels of each group in a cell, at the pixel size that the tiles have. Where the pixels of all tiles nest in the cell's, these
 * are the same pixels; else the pixel grid of the cell at the product's nominal pixel size.
 */
export function cellSizes(cell: Cell, tiles: Tile[]): PixelGrid[] {
  const [first] = tiles;
  return (
    nestedSizes(cell, tiles) ?? computePixelGrids(gridByName(cell.grid), cell.geocode, pixelSizes(first))
  );
}

/** Bytes of all bands of a tile whose groups have these sizes. */
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
  const here = cells.cellSize(geocode.length);
  const there = cells.cellSize(first.geocode.length);
  // Exact: cells of a grid are powers of two apart.
  const sizes = first.groups.map(({ width, height }) => ({
    width: width * (here.width / there.width),
    height: height * (here.height / there.height),
  }));
  return sizes.every(({ width, height }) => Number.isInteger(width) && Number.isInteger(height))
    ? sizes
    : null;
}

/** Ground metres of a pixel of each group. */
function pixelSizes({ grid, geocode, groups }: Tile): { x: number; y: number }[] {
  const ground = cellSizeMetres(gridByName(grid), geocode);
  return groups.map(({ width, height }) => ({
    x: nominal(ground.width / width),
    y: nominal(ground.height / height),
  }));
}
