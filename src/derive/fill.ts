/** Fill as a job: completes dates of each cell with pixels of dates near in time. */
import type { JobContext, Process } from '../jobs/index.js';
import { defaultToRawSource, type FilterParams, parseFilter } from '../query/index.js';
import type { TileRecord } from '../storage/index.js';
import { derivedProperties, deriveProcess, type PlannedDerivation, type TileProcessContext } from './job.js';
import { searchTilesOfCell, selectedCells, sourceFilter } from './selection.js';
import type { FillTargets } from './tasks.js';
import { DILATION_SCHEMA } from './tile.js';

interface FillInputs {
  filter?: FilterParams;
  /** Days before and after a tile from which pixels are taken. */
  window?: number;
  /** Percent of the cell that should hold data. */
  toCoverage?: number;
  /** Percent of cloud that may stay. */
  toCloud?: number;
  /** Metres by which clouds are widened. */
  dilate?: number;
}

export const DEFAULT_WINDOW_DAYS = 16;
export const DAY_MS = 86_400_000;

export const fillProcess = (context: TileProcessContext): Process =>
  deriveProcess(context, {
    id: 'fill',
    title: 'Fill tiles',
    description: 'Takes pixels of dates near in time where a tile has no data, cloud or shadow.',
    properties: {
      window: { type: 'number', minimum: 0, maximum: 36_500 },
      toCoverage: { type: 'number', minimum: 0, maximum: 100 },
      toCloud: { type: 'number', minimum: 0, maximum: 100 },
      dilate: DILATION_SCHEMA,
    },
    reasonForNone: 'no donor has a usable pixel',
    plan: planFill,
  });

/** The best tile of a cell is the first base and covers all tiles within its window; then the best of the remaining tiles is a base. */
async function* planFill(
  { storage, finder }: TileProcessContext,
  {
    filter: wanted = {},
    window: days = DEFAULT_WINDOW_DAYS,
    toCoverage = 100,
    toCloud = 0,
    dilate = DILATION_SCHEMA.default,
  }: FillInputs,
  isMine: JobContext['isMine'],
): AsyncGenerator<PlannedDerivation> {
  const filter = defaultToRawSource(parseFilter(wanted));
  const window = days * DAY_MS;
  const targets = { coverage: toCoverage, cloud: toCloud };
  for (const cell of await selectedCells(storage, filter, isMine)) {
    const picked = await searchTilesOfCell(finder, cell, filter);
    const raw = await searchTilesOfCell(finder, cell, sourceFilter('raw'));
    for (const base of basesOf(picked, window)) yield planOne(base, raw, window, targets, dilate);
  }
}

/** Best first: the most pixels that are not cloud; dates whose cloud was not assessed come last; ties go to the earliest. */
function basesOf(tiles: TileRecord[], window: number): TileRecord[] {
  const clearShare = ({ coverage, cloudCover }: TileRecord) => coverage * (100 - (cloudCover ?? 0));
  const isUnknown = ({ cloudCover }: TileRecord) => Number(cloudCover === null);
  let candidates = tiles.toSorted(
    (a, b) => isUnknown(a) - isUnknown(b) || clearShare(b) - clearShare(a) || a.start - b.start || byId(a, b),
  );
  const bases: TileRecord[] = [];
  while (candidates.length > 0) {
    const [base] = candidates;
    bases.push(base);
    candidates = candidates.filter((tile) => timeDistanceMs(tile, base) > window);
  }
  return bases;
}

function planOne(
  base: TileRecord,
  raw: TileRecord[],
  window: number,
  targets: FillTargets,
  dilate: number,
): PlannedDerivation {
  if (base.coverage >= targets.coverage && (base.cloudCover ?? 100) <= targets.cloud)
    return { skipped: 'both limits are already met' };
  const donors = donorsOf(base, raw, window);
  if (donors.length === 0) return { skipped: 'no other date within the window' };
  return {
    facts: derivedProperties(base, 'filled'),
    inputs: [base, ...donors],
    parameters: { ...targets, dilate },
    task: (tile, [base, ...donors]) => ({ kind: 'fill', tile, base, donors, targets, dilate }),
  };
}

/** The least cloudy first, unknown cloud cover last; ties are ordered by distance in time, then by id. */
function donorsOf(base: TileRecord, raw: TileRecord[], window: number): TileRecord[] {
  const cloud = ({ cloudCover }: TileRecord) => cloudCover ?? 101;
  return raw
    .filter((tile) => tile.id !== base.id && timeDistanceMs(tile, base) <= window)
    .sort((a, b) => cloud(a) - cloud(b) || timeDistanceMs(a, base) - timeDistanceMs(b, base) || byId(a, b));
}

/** Milliseconds between the times of two tiles; 0 if they overlap. */
export function timeDistanceMs(
  a: Pick<TileRecord, 'start' | 'end'>,
  b: Pick<TileRecord, 'start' | 'end'>,
): number {
  return Math.max(0, a.start - b.end, b.start - a.end);
}

function byId(a: TileRecord, b: TileRecord): number {
  return a.id < b.id ? -1 : a.id > b.id ? 1 : 0;
}
