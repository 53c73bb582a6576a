/** Statistics of the values of an expression in a zone, one for each date. */
import type { QueryBounds, ScatterQuery } from '../../dht/index.js';
import { fromErrorDocument } from '../../errors.js';
import { parseExpression } from '../../expressions/index.js';
import { and, type Filter, type PartialAnswer, partialAnswer } from '../../query/index.js';
import { compareCursors } from '../../storage/index.js';
import { compareText } from '../../utils/compare-text.js';
import { changedWhileReading, zoneTooLarge } from '../errors.js';
import {
  type MedianBounds,
  medianBounds,
  medianWithin,
  type QuantileSketch,
  sumOf,
} from './distributed-series-median.js';
import {
  type AcquisitionFacts,
  MAX_TILES,
  type PartialDate,
  type PartialSeries,
  type SeriesQuery,
} from './partial-series.js';
import { type Zone, zoneBbox } from './series-zone.js';
import type { ZoneStatistics } from './zonal-series-statistics.js';

/** Statistics of one acquisition over the clear pixels of the zone that have data; NaN if there are none. */
export interface SeriesDate extends AcquisitionFacts {
  /** All pixels of the zone in the cells of the collection, including pixels without data or under cloud. */
  pixels: number;
  valid: number;
  mean: number;
  /** Population standard deviation (divided by the number of pixels). */
  std: number;
  min: number;
  max: number;
  median: number;
}

export interface Series extends PartialAnswer {
  /** From the earliest on, including dates without valid pixels. */
  dates: SeriesDate[];
  /** Tiles that lack the bands of the expression. */
  skipped: number;
}

export interface TimeSeriesRequest {
  region: Zone;
  expression: string;
  filter: Filter;
}

/** Attempts to read a series whose tiles change in the meantime. */
const MAX_ATTEMPTS = 3;

/**
 * Reads a series. A pixel counts if it is clear, filled or not assessed in the mask, and the expression has a value. Bands of several sizes
 * are sampled at the pixel centres of the finest band. Throws TW_IMAGERY_EXPRESSION, TW_IMAGERY_BAND if no tile has the bands,
 * TW_IMAGERY_TOO_MUCH, TW_IMAGERY_TILE_FILE and TW_IMAGERY_CHANGING.
 */
export async function readSeries(
  send: ScatterQuery<SeriesQuery, PartialSeries>,
  boundsOf: (filter: Filter) => QueryBounds,
  { region, expression, filter: wanted }: TimeSeriesRequest,
): Promise<Series> {
  parseExpression(expression);
  const filter = and([{ op: 's_intersects', shape: { bbox: zoneBbox(region) } }, wanted]);
  const query: SeriesQuery = { region, expression, filter };
  const where = () => boundsOf(filter);
  for (let tries = 0; tries < MAX_ATTEMPTS; tries++) {
    const { answers, unanswered, seq } = await send(query, where);
    const dates = datesOf(answers);
    const medians = await mediansOf(dates, async (bounds) => {
      const { answers } = await send({ ...query, medians: bounds }, where, seq);
      return answers.flatMap((answer) => answer.dates);
    });
    if (!medians) continue;
    const pixels = new Map<string, number>();
    for (const [collection, count] of answers.flatMap((answer) => answer.pixels))
      pixels.set(collection, (pixels.get(collection) ?? 0) + count);
    return {
      dates: dates.map((parts, i) => dateOf(parts, pixels, medians[i])),
      skipped: answers.reduce((sum, { skipped }) => sum + skipped, 0),
      ...partialAnswer(unanswered),
    };
  }
  throw changedWhileReading();
}

/** Groups the parts by date, the earliest first. Throws the error of the newest tile if no tile has the bands. */
function datesOf(shares: PartialSeries[]): PartialDate[][] {
  const matched = shares.reduce((sum, share) => sum + share.matched, 0);
  if (matched > MAX_TILES) throw zoneTooLarge(`${matched} tiles`, MAX_TILES);
  const dates = new Map<string, PartialDate[]>();
  for (const date of shares.flatMap((share) => share.dates))
    dates.set(date.key, [...(dates.get(date.key) ?? []), date]);
  const [lack] = shares
    .flatMap((share) => share.lack ?? [])
    .sort((a, b) => compareCursors(a.tile, b.tile, []));
  if (dates.size === 0 && lack) throw fromErrorDocument(lack.error);
  return [...dates.values()].sort(([a], [b]) => a.start - b.start || compareText(a.key, b.key));
}

/** The median of each date, NaN for a date without values. Returns undefined if the second round does not match the first one. */
async function mediansOf(
  dates: PartialDate[][],
  secondRound: (bounds: [date: string, bounds: MedianBounds][]) => Promise<PartialDate[]>,
): Promise<number[] | undefined> {
  const bounds = new Map<string, MedianBounds>();
  const known = dates.map((parts) => {
    const holding = parts.filter(({ places }) => places.length > 0);
    if (holding.length === 1) return holding[0].median!;
    const found = medianBounds(holding.map(({ sketch }) => sketch as QuantileSketch));
    if (!found) return NaN;
    if (found[0] === found[1]) return found[0];
    bounds.set(parts[0].key, found);
    return undefined;
  });
  if (bounds.size === 0) return known as number[];
  const within = await secondRound([...bounds]);
  const medians = known.map((median, i) => {
    if (median !== undefined) return median;
    const parts = dates[i];
    const counted = within.flatMap((date) => (date.key === parts[0].key ? (date.within ?? []) : []));
    const isSame = sumOf(counted, ({ count }) => count) === sumOf(parts, ({ sketch }) => sketch?.count ?? 0);
    return isSame ? medianWithin(counted) : undefined;
  });
  return medians.includes(undefined) ? undefined : (medians as number[]);
}

function dateOf(parts: PartialDate[], pixels: ReadonlyMap<string, number>, median: number): SeriesDate {
  const [{ start, collection }] = parts;
  // A fixed order makes sums independent of the distribution of the cells.
  const places = parts.flatMap((part) => part.places).sort((a, b) => compareText(a.key, b.key));
  const { valid, mean, squares, min, max } = places.reduce(mergeStatistics, EMPTY_STATISTICS);
  return {
    start,
    end: Math.max(...parts.map(({ end }) => end)),
    collection,
    scenes: [...new Set(parts.flatMap(({ scenes }) => scenes))].sort(),
    pixels: pixels.get(collection)!,
    valid,
    mean: valid > 0 ? mean : NaN,
    std: valid > 0 ? Math.sqrt(squares / valid) : NaN,
    min: valid > 0 ? min : NaN,
    max: valid > 0 ? max : NaN,
    median,
  };
}

const EMPTY_STATISTICS: ZoneStatistics = {
  key: '',
  valid: 0,
  mean: 0,
  squares: 0,
  min: Infinity,
  max: -Infinity,
};

/** Statistics of the union of two sets of values (Chan, Golub and LeVeque 1979). */
function mergeStatistics(a: ZoneStatistics, b: ZoneStatistics): ZoneStatistics {
  if (a.valid === 0) return b;
  const valid = a.valid + b.valid;
  const apart = b.mean - a.mean;
  return {
    key: a.key,
    valid,
    mean: a.mean + (apart * b.valid) / valid,
    squares: a.squares + b.squares + (apart * apart * a.valid * b.valid) / valid,
    min: Math.min(a.min, b.min),
    max: Math.max(a.max, b.max),
  };
}
