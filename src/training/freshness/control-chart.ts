/**
 * A control chart of the errors of one model: which dates differ from those that are known from its training. It combines a limit for
 * single dates (Shewhart) with an exponentially weighted moving average (EWMA), which detects small changes that last.
 *
 * The chart works with logarithms of errors, because errors differ by factors. Each date is compared with the known dates of its season,
 * because a model is worse in some seasons than in others.
 */
import { medianOfSorted } from '../../utils/sorted.js';

/** One date of the chart. */
export interface ChartPoint {
  /** Milliseconds since 1970. */
  time: number;
  /** Logarithm of the error. */
  value: number;
}

interface ChartVerdict {
  /** Index of the first date of a change that has lasted until the last date; undefined if there is none. */
  firstDrifted?: number;
}

const DAY_MS = 86_400_000;
const YEAR_DAYS = 365.25;
/** Standard deviation of the weights of known dates by season, in days. */
const SEASON_WIDTH_DAYS = 30;
/** Known dates farther than this from the season of a date say little about it. */
const MAX_SEASON_DISTANCE_DAYS = 2 * SEASON_WIDTH_DAYS;
/** Weight of the mean of all known dates, as a number of dates of the same season. */
const MEAN_WEIGHT = 0.3;

/** Limits in standard deviations. */
const DATE_LIMIT = 3.5;
const AVERAGE_LIMIT = 3.5;
/** Weight of the last date in the moving average. */
const AVERAGE_WEIGHT = 0.3;
const AVERAGE_DEVIATION = Math.sqrt(AVERAGE_WEIGHT / (2 - AVERAGE_WEIGHT));
/** Smallest spread: a single date with less than 2.4 times the error (exp(3.5 * 0.25)) is never a change. */
const MIN_SPREAD = 0.25;
/** Spread if too few dates are known or none of the season is, and the number of dates from which on it is estimated. */
const DEFAULT_SPREAD = 0.5;
const MIN_SPREAD_DATES = 8;
/** Number of dates that the spread of all places counts in the spread of one place. */
const POOLED_DATES = 6;
/** A standard deviation is this multiple of the median absolute deviation of a normal distribution. */
const DEVIATIONS_PER_MAD = 1.4826;

/** Distance of two times within the year, in days, 0 to 183. */
function seasonDistance(a: number, b: number): number {
  const days = (Math.abs(a - b) / DAY_MS) % YEAR_DAYS;
  return Math.min(days, YEAR_DAYS - days);
}

/** Returns the value that the known dates, at least one, let expect at a time. */
export function expectedValue(known: readonly ChartPoint[], time: number): number {
  const mean = known.reduce((sum, { value }) => sum + value, 0) / known.length;
  let sum = MEAN_WEIGHT * mean;
  let weights = MEAN_WEIGHT;
  for (const point of known) {
    const weight = Math.exp(-((seasonDistance(point.time, time) / SEASON_WIDTH_DAYS) ** 2) / 2);
    sum += weight * point.value;
    weights += weight;
  }
  return sum / weights;
}

/**
 * Returns how much each known date differs from the value that the other known dates let expect. Dates without another one of their season
 * are omitted.
 */
export function knownDeviations(known: readonly ChartPoint[]): ChartPoint[] {
  return known.flatMap(({ time, value }, i) => {
    const others = known.toSpliced(i, 1);
    return isOfKnownSeason(others, time) ? [{ time, value: value - expectedValue(others, time) }] : [];
  });
}

function isOfKnownSeason(known: readonly ChartPoint[], time: number): boolean {
  return known.some((point) => seasonDistance(point.time, time) <= MAX_SEASON_DISTANCE_DAYS);
}

/** Returns the standard deviation of a date from the spread of its place. It is larger in a season without known dates. */
export function dateSpread(known: readonly ChartPoint[], time: number, spread: number): number {
  return isOfKnownSeason(known, time) ? spread : Math.max(spread, DEFAULT_SPREAD);
}

/** Returns the robust standard deviation of the known dates of all places. */
export function pooledSpread(deviations: readonly number[]): number {
  if (deviations.length < MIN_SPREAD_DATES) return DEFAULT_SPREAD;
  const sizes = Float64Array.from(deviations, Math.abs).sort();
  return Math.max(MIN_SPREAD, DEVIATIONS_PER_MAD * medianOfSorted(sizes));
}

/** Returns the standard deviation of one place: that of its own known dates, drawn towards that of all places if they are few. */
export function placeSpread(deviations: readonly number[], pooled: number): number {
  const squares = deviations.reduce((sum, deviation) => sum + deviation ** 2, 0);
  return Math.max(
    MIN_SPREAD,
    Math.sqrt((squares + POOLED_DATES * pooled ** 2) / (deviations.length + POOLED_DATES)),
  );
}

/**
 * Judges the deviations of new dates, the earliest first, in standard deviations. Only increases are changes. A date outside of the limits
 * counts only if the median since then is above half of the limit: smoke or a cloud that the mask misses passes, and a change stays.
 */
export function judgeDeviations(scores: readonly number[]): ChartVerdict {
  let average = 0;
  for (const [i, score] of scores.entries()) {
    // A single outlier must not dominate the average.
    average = AVERAGE_WEIGHT * Math.min(score, DATE_LIMIT) + (1 - AVERAGE_WEIGHT) * average;
    const isOutside = score > DATE_LIMIT || average > AVERAGE_LIMIT * AVERAGE_DEVIATION;
    if (isOutside && medianOfSorted(Float64Array.from(scores.slice(i)).sort()) > DATE_LIMIT / 2)
      return { firstDrifted: i };
  }
  return {};
}
