/** Split as a job: cuts tiles into tiles of finer cells. Also the pixel sizes of tiles in another cell. */
import { computePixelGrids, gridByName, nominalSizeMetres, type PixelGrid } from '../grid/index.js';
import type { JobContext, Process } from '../jobs/index.js';
import { defaultToRawSource, type FilterParams, parseFilter } from '../query/index.js';
import { bytesPerSample } from '../raster/index.js';
import type { GroupRecord, TileRecord } from '../storage/index.js';
import { splitTooFine } from './errors.js';
import {
  derivedProperties,
  deriveProcess,
  type PlannedDerivation,
  type TileDerivation,
  type TileProcessContext,
} from './job.js';
import { selectedTiles } from './selection.js';

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

/** The nominal pixel size of each group, metres. */
function pixelSizes({ grid, geocode, groups }: Tile): { x: number; y: number }[] {
  const ground = nominalSizeMetres(gridByName(grid), geocode);
  return groups.map(({ width, height }) => ({
    x: nominal(ground.width / width),
    y: nominal(ground.height / height),
  }));
}

interface SplitInputs {
  filter?: FilterParams;
  /** Length of the geocodes of the new cells. */
  precision: number;
}

/** Cells that one tile may be split into: two more characters of a geohash, or six more digits of a quadkey. */
const MAX_CELLS_PER_TILE = 4096;

export const splitProcess = (context: TileProcessContext): Process =>
  deriveProcess(context, {
    id: 'split',
    title: 'Split tiles',
    description: 'Cuts tiles into those of their finer cells.',
    required: ['precision'],
    properties: { precision: { type: 'integer', minimum: 1, maximum: 24 } },
    reasonForNone: 'holds no data',
    plan: planSplit,
  });

/** Throws TW_WRANGLE_TOO_FINE, before anything is written. */
async function* planSplit(
  { storage }: TileProcessContext,
  { filter = {}, precision }: SplitInputs,
  isMine: JobContext['isMine'],
): AsyncGenerator<PlannedDerivation> {
  for await (const tile of selectedTiles(storage, defaultToRawSource(parseFilter(filter)), isMine)) {
    if (tile.geocode.length >= precision)
      yield { skipped: `its cell is not coarser than precision ${precision}` };
    else for (const geocode of cellsWithin(tile, precision)) yield planOne(tile, geocode);
  }
}

function cellsWithin({ grid, geocode }: TileRecord, precision: number): string[] {
  const cells = gridByName(grid);
  const perLevel = grid === 'geohash' ? 32 : 4;
  if (precision > cells.maxPrecision || perLevel ** (precision - geocode.length) > MAX_CELLS_PER_TILE)
    throw splitTooFine(grid, geocode, precision, MAX_CELLS_PER_TILE);
  let geocodes = [geocode];
  while (geocodes[0].length < precision) geocodes = geocodes.flatMap((one) => cells.children(one));
  return geocodes;
}

function planOne(parent: TileRecord, geocode: string): TileDerivation {
  const facts = derivedProperties(parent, 'split', { grid: parent.grid, geocode });
  return {
    facts,
    inputs: [parent],
    parameters: {},
    task: (tile, sources) => ({ kind: 'cut', tile, sources, sizes: cellSizes(facts, [parent]) }),
  };
}
