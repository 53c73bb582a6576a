/** Split as a job: cuts tiles into tiles of finer cells. */
import { gridByName } from '../../grid/index.js';
import type { JobContext, Process } from '../../jobs/index.js';
import {
  checkFilter,
  defaultToRawSource,
  type Filter,
  type FilterParams,
  filterSchema,
  parseFilter,
} from '../../query/index.js';
import type { Storage, TileRecord } from '../../storage/index.js';
import { splitTooFine } from '../errors.js';
import { cellSizes } from '../tiles/index.js';
import { selectedTiles } from './derive-job-tiles.js';
import {
  type DeriveResults,
  deriveTiles,
  type PlannedDerivation,
  RESUMABLE_PROCESS,
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

export function splitProcess(context: TileProcessContext): Process {
  return {
    id: 'split',
    title: 'Split tiles',
    description: 'Cuts tiles into those of their finer cells.',
    inputs: {
      type: 'object',
      required: ['precision'],
      additionalProperties: false,
      properties: {
        filter: filterSchema,
        precision: { type: 'integer', minimum: 1, maximum: 24 },
      },
    },
    ...RESUMABLE_PROCESS,
    check: checkFilter,
    run: (inputs, job) => split(context, inputs as SplitInputs, job),
  };
}

function split(context: TileProcessContext, inputs: SplitInputs, job: JobContext): Promise<DeriveResults> {
  const filter = defaultToRawSource(parseFilter(inputs.filter ?? {}));
  const planned = planSplit(context.storage, filter, inputs.precision, job.isMine);
  return deriveTiles(context, planned, job, 'holds no data');
}

/** Throws TW_WRANGLE_TOO_FINE, before anything is written. */
async function* planSplit(
  storage: Storage,
  filter: Filter,
  precision: number,
  isMine: JobContext['isMine'],
): AsyncGenerator<PlannedDerivation> {
  for await (const tile of selectedTiles(storage, filter, isMine)) {
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
  const { collection, scene, grid, start, end, platform } = parent;
  const facts = { collection, scene, grid, geocode, source: 'split' as const, start, end, platform };
  return {
    facts,
    inputs: [parent],
    parameters: {},
    task: (tile, sources) => ({ kind: 'cut', tile, sources, sizes: cellSizes(facts, [parent]) }),
  };
}
