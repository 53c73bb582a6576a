/** When the rounds of a subscription take place, and which dates they search. */
import { parseDatetime, writeDatetime } from '../query/index.js';
import { badInterval } from './errors.js';

const DAY_MS = 86_400_000;
const UNITS = { d: DAY_MS, h: 3_600_000, m: 60_000 };
const MIN_EVERY_MS = UNITS.m;
const MAX_EVERY_MS = 30 * DAY_MS;

/** Archives deliver scenes late, and process them again, so later rounds search this long before the last success. */
export const LOOKBACK_MS = 30 * DAY_MS;

/** The texts that `parseEvery` accepts, for the OpenAPI document. */
export const EVERY_PATTERN = [
  '^(([1-9]|[12][0-9]|30)d',
  '([1-9][0-9]?|[1-6][0-9]{2}|7[01][0-9]|720)h',
  '([1-9][0-9]{0,3}|[1-3][0-9]{4}|4[0-2][0-9]{3}|43[01][0-9]{2}|43200)m)$',
].join('|');

/** Parses "15m", "6h" or "30d". Throws TW_SUBSCRIPTION_EVERY. */
export function parseEvery(text: string): number {
  const [, count, unit] = /^([1-9]\d{0,5})([dhm])$/.exec(text) ?? [];
  const every = Number(count) * UNITS[unit as keyof typeof UNITS];
  if (!(every >= MIN_EVERY_MS && every <= MAX_EVERY_MS)) throw badInterval(text);
  return every;
}

/** The text of an interval in the largest unit that divides it. */
export function formatEvery(every: number): string {
  const [unit, length] = Object.entries(UNITS).find(([, length]) => every % length === 0) ?? ['m', UNITS.m];
  return `${every / length}${unit}`;
}

/** The first time after `now` on the grid of `planned`, so that missed rounds are not made up for one by one. */
export function nextRunTime(planned: number, every: number, now: number): number {
  return planned + (Math.floor(Math.max(0, now - planned) / every) + 1) * every;
}

/**
 * The dates that a round searches. A search whose end is open begins LOOKBACK_MS before the start of the last success. All other searches,
 * and all before the first success, are complete.
 */
export function roundDatetime(
  datetime: string | undefined,
  succeededAt: number | undefined,
): string | undefined {
  const { start = -Infinity, end } =
    datetime === undefined ? {} : parseDatetime(datetime, { dates: 'periods' });
  if (succeededAt === undefined || end !== undefined) return datetime;
  return writeDatetime({ start: Math.max(start, succeededAt - LOOKBACK_MS), end: undefined });
}
