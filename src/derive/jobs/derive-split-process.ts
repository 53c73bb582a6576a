/** Split as a job: cuts tiles into tiles of finer cells. */
import { gridByName } from '../../grid/index.js';
import type { JobContext, Process } from '../../jobs/index.js';
import { defaultToRawSource, type FilterParams, parseFilter } from '../../query/index.js';
import type { TileRecord } from '../../storage/index.js';
import { splitTooFine } from '../errors.js';
import { cellSizes } from '../tiles/index.js';
import { selectedTiles } from './derive-job-tiles.js';
import { deriveProcess } from './derive-process.js';
import {
  derivedProperties,
  type PlannedDerivation,
  type TileDerivation,
  type TileProcessContext,
} from './derive-tiles-job.js';

export interface SplitInputs {
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
