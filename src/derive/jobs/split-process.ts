/** Split as a job: tiles become the tiles of their finer cells. */
import { gridByName } from '../../grid/index.js';
import type { JobContext, Process } from '../../jobs/index.js';
import {
  checkFilter,
  type Filter,
  type FilterParams,
  filterBody,
  parseFilter,
  rawUnlessAsked,
} from '../../query/index.js';
import type { Storage, TileRecord } from '../../storage/index.js';
import { splitTooFine } from '../errors.js';
import { cellSizes } from '../tiles/cell-sizes.js';
import {
  type Derivation,
  derive,
  type Planned,
  REPEATABLE,
  type WrangleContext,
  type WrangleResults,
} from './derive-tiles.js';
import { pickedTiles } from './selected-tiles.js';

export interface SplitInputs {
  filter?: FilterParams;
  /** Length of the geocodes of the new cells. */
  precision: number;
}

/** Cells that one tile may be split into: two characters of a geohash, six digits of a quadkey and more. */
const MOST_CELLS = 4096;

export function splitProcess(context: WrangleContext): Process {
  return {
    id: 'split',
    title: 'Split tiles',
    description: 'Cuts tiles into those of their finer cells.',
    inputs: {
      type: 'object',
      required: ['precision'],
      additionalProperties: false,
      properties: {
        filter: { type: 'object', additionalProperties: false, properties: filterBody },
        precision: { type: 'integer', minimum: 1, maximum: 24 },
      },
    },
    ...REPEATABLE,
    check: checkFilter,
    run: (inputs, job) => split(context, inputs as SplitInputs, job),
  };
}

function split(context: WrangleContext, inputs: SplitInputs, job: JobContext): Promise<WrangleResults> {
  const filter = rawUnlessAsked(parseFilter(inputs.filter ?? {}));
  const planned = planSplit(context.storage, filter, inputs.precision, job.isMine);
  return derive(context, planned, job, 'holds no data');
}

/** Throws TW_WRANGLE_TOO_FINE, before anything is written. */
async function* planSplit(
  storage: Storage,
  filter: Filter,
  precision: number,
  isMine: JobContext['isMine'],
): AsyncGenerator<Planned> {
  for await (const tile of pickedTiles(storage, filter, isMine)) {
    if (tile.geocode.length >= precision)
      yield { skipped: `its cell is not coarser than precision ${precision}` };
    else for (const geocode of cellsWithin(tile, precision)) yield planOne(tile, geocode);
  }
}

function cellsWithin({ grid, geocode }: TileRecord, precision: number): string[] {
  const cells = gridByName(grid);
  const perLevel = grid === 'geohash' ? 32 : 4;
  if (precision > cells.maxPrecision || perLevel ** (precision - geocode.length) > MOST_CELLS)
    throw splitTooFine(grid, geocode, precision, MOST_CELLS);
  let geocodes = [geocode];
  while (geocodes[0].length < precision) geocodes = geocodes.flatMap((one) => cells.children(one));
  return geocodes;
}

function planOne(parent: TileRecord, geocode: string): Derivation {
  const { collection, scene, grid, start, end, platform } = parent;
  const facts = { collection, scene, grid, geocode, source: 'split' as const, start, end, platform };
  return {
    facts,
    inputs: [parent],
    parameters: {},
    task: (tile, sources) => ({ kind: 'cut', tile, sources, sizes: cellSizes(facts, [parent]) }),
  };
}
