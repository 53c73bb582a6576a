/** Values of parameters: times and the `datetime` of STAC APIs, numbers, and bounding boxes. */

import type { Bbox } from '../grid/index.js';
import { badBbox, badDatetime, badInstant } from './errors.js';

/** Milliseconds since 1970, closed. An open end is absent. */
interface TimeRange {
  start?: number;
  end?: number;
}

const DATE = String.raw`(\d{4})-(\d\d)-(\d\d)`;
/** A year, a month or a day. */
const PERIOD_PATTERN = /^(\d{4})(?:-(\d\d)(?:-(\d\d))?)?$/;
/** RFC 3339, section 5.6: date-time. */
const INSTANT_PATTERN = new RegExp(
  String.raw`^${DATE}t(\d\d):(\d\d):(\d\d)(\.\d+)?(?:z|([+-])(\d\d):(\d\d))$`,
  'i',
);
const DAY_MS = 86_400_000;
const MINUTE_MS = 60_000;

/** Accepted ends without a time, which stand for the entire period in UTC: days only, or also months and years. */
type DatePrecision = 'none' | 'days' | 'periods';

const SHOWN_DAY = '[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])';
const SHOWN_INSTANT = `${SHOWN_DAY}[Tt]([01][0-9]|2[0-3]):[0-5][0-9]:([0-5][0-9]|60)(\\.[0-9]+)?([Zz]|[+-]([01][0-9]|2[0-3]):[0-5][0-9])`;
const SHOWN_PERIOD = `[0-9]{4}(-(0[1-9]|1[0-2])(-(0[1-9]|[12][0-9]|3[01]))?)?`;
const rangesOf = (end: string) => `^(${end}(/(${end}|\\.\\.)?)?|(\\.\\.)?/${end})$`;

/** Patterns of texts that `parseDatetime` accepts, for JSON Schemas. They do not exclude missing days, and ends before the start. */
export const DATETIME_PATTERNS = {
  none: rangesOf(SHOWN_INSTANT),
  periods: rangesOf(`(${SHOWN_INSTANT}|${SHOWN_PERIOD})`),
  /** One day or instant. */
  moment: `^(${SHOWN_INSTANT}|${SHOWN_DAY})$`,
};

const INSTANT_FORM = 'an RFC 3339 time with a zone';
const FORMS: Record<DatePrecision, string> = {
  none: INSTANT_FORM,
  days: `a day (2024-06-01) or ${INSTANT_FORM}`,
  periods: `a year (2024), a month (2024-06), a day (2024-06-01) or ${INSTANT_FORM}`,
};

/**
 * Parses an instant, or an interval A/B of two, of which one may be open (`..` or empty). Digits below a millisecond are dropped.
 * Throws TW_QUERY_DATETIME.
 */
export function parseDatetime(text: string, { dates = 'none' }: { dates?: DatePrecision } = {}): TimeRange {
  const ends = text.split('/');
  const parse = (end: string) => parseEnd(end, text, dates);
  if (ends.length === 1) {
    const [start, last] = parse(text);
    return { start, end: last };
  }
  if (ends.length > 2) throw badDatetime(text, 'has more than two ends');
  const [from, to] = ends.map((end) => (end === '' || end === '..' ? undefined : parse(end)));
  if (!from && !to) throw badDatetime(text, 'is open at both ends');
  if (from && to && from[0] > to[1]) throw badDatetime(text, 'ends before it starts');
  const range: TimeRange = {};
  if (from) range.start = from[0];
  if (to) range.end = to[1];
  return range;
}

/** Parses an instant, in ms since 1970. Throws TW_QUERY_INSTANT with the name of the parameter. */
export function parseInstant(text: string, parameter: string): number {
  const match = INSTANT_PATTERN.exec(text);
  const time = match ? instantOf(match) : undefined;
  if (time === undefined) throw badInstant(parameter, text);
  return time;
}

/** Writes a range with times, a form that every API accepts. */
export function writeDatetime({ start, end }: TimeRange): string {
  const iso = (time: number | undefined) =>
    time === undefined ? '..' : new Date(time).toISOString().replace('.000Z', 'Z');
  return `${iso(start)}/${iso(end)}`;
}

/** First and last millisecond of an instant, a day, a month or a year. */
function parseEnd(end: string, given: string, dates: DatePrecision): [first: number, last: number] {
  const instant = INSTANT_PATTERN.exec(end);
  if (instant) {
    const time = instantOf(instant);
    if (time === undefined) throw badDatetime(given, `has a part out of its range in "${end}"`);
    return [time, time];
  }
  const period = PERIOD_PATTERN.exec(end);
  if (!period) throw badDatetime(given, `has an end that is not ${FORMS[dates]}: "${end}"`);
  const range = periodOf(period);
  if (!range) throw badDatetime(given, `has a date that does not exist: "${end}"`);
  const isDay = period[3] !== undefined;
  if (dates === 'periods' || (dates === 'days' && isDay)) return range;
  const example = writeDatetime(parseDatetime(given, { dates: 'periods' }));
  throw badDatetime(given, `has no ${dates === 'days' ? 'day' : 'time'} in "${end}"`, example);
}

/** Undefined if the date does not exist. */
function periodOf([, year, month, dayOfMonth]: RegExpExecArray): [first: number, last: number] | undefined {
  const first = dayOf(['', year, month ?? '01', dayOfMonth ?? '01']);
  if (first === undefined) return undefined;
  if (dayOfMonth !== undefined) return [first, first + DAY_MS - 1];
  const next = new Date(first);
  if (month === undefined) next.setUTCFullYear(next.getUTCFullYear() + 1);
  else next.setUTCMonth(next.getUTCMonth() + 1);
  return [first, next.getTime() - 1];
}

function dayOf([, year, month, dayOfMonth]: readonly string[]): number | undefined {
  const text = `${year}-${month}-${dayOfMonth}`;
  const time = Date.parse(`${text}T00:00:00Z`);
  // `Date.parse` accepts some days that do not exist as days of the next month.
  return Number.isFinite(time) && new Date(time).toISOString().startsWith(text) ? time : undefined;
}

function instantOf(match: RegExpExecArray): number | undefined {
  const first = dayOf(match);
  const [hours, minutes, seconds] = match.slice(4, 7).map(Number) as [number, number, number];
  const milliseconds = Number((match[7] ?? '').padEnd(4, '0').slice(1, 4));
  const zoneHours = Number(match[9] ?? 0);
  const zoneMinutes = Number(match[10] ?? 0);
  // Second 60 is a leap second; it counts as the first second of the next minute.
  const inRange = hours < 24 && minutes < 60 && seconds <= 60 && zoneHours < 24 && zoneMinutes < 60;
  if (first === undefined || !inRange) return undefined;
  const offset = (match[8] === '-' ? -1 : 1) * (zoneHours * 60 + zoneMinutes) * MINUTE_MS;
  return first + (hours * 60 + minutes) * MINUTE_MS + seconds * 1000 + milliseconds - offset;
}

/**
 * A hint for messages about a latitude beyond 90: longitude comes first. If the points with swapped coordinates are valid, the hint
 * includes them as `swapped`.
 */
export function axisOrderHint(points: readonly (readonly [x: number, y: number])[], swapped: string): string {
  const isValid = points.every(([x, y]) => Math.abs(x) <= 90 && Math.abs(y) <= 180);
  return `longitude comes first${isValid ? `, so perhaps ${swapped} is meant` : ''}`;
}

/** Parses a plain decimal number; NaN for anything else. Number() also accepts "", "0x10" and "Infinity". */
export function parseNumber(text: string): number {
  return /^\s*[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?\s*$/i.test(text) ? Number(text) : NaN;
}

const LONGITUDE = '-?(180(\\.0+)?|(1[0-7][0-9]|[0-9]?[0-9])(\\.[0-9]+)?)';
const LATITUDE = '-?(90(\\.0+)?|[0-8]?[0-9](\\.[0-9]+)?)';
const HEIGHT = '-?[0-9]+(\\.[0-9]+)?';
const CORNER = `${LONGITUDE},${LATITUDE}`;

/** Pattern of boxes as text, for JSON Schemas. It does not exclude a south above its north. */
export const BBOX_PATTERN = `^${CORNER},(${CORNER}|${HEIGHT},${CORNER},${HEIGHT})$`;

/** JSON Schemas of boxes of 4 or 6 numbers. */
export const BBOX_SIZES = [4, 6].map((size) => ({ type: 'array', minItems: size, maxItems: size }));

/** Parses west,south,east,north in degrees. The heights of six numbers are ignored. West > east crosses the antimeridian. */
export function parseBbox(text: string): Bbox {
  return checkBbox(text.split(',').map(parseNumber), text);
}

/** Checks the numbers of a bounding box, as in a JSON body. */
export function checkBbox(numbers: readonly number[], given = numbers.join(',')): Bbox {
  if (!numbers.every(Number.isFinite)) throw badBbox(given, 'has a part that is not a number');
  if (numbers.length !== 4 && numbers.length !== 6) throw badBbox(given, `has ${numbers.length} numbers`);
  const [west, south, east, north] = (
    numbers.length === 4 ? numbers : [numbers[0], numbers[1], numbers[3], numbers[4]]
  ) as Bbox;
  if (numbers.length === 6 && numbers[2] > numbers[5])
    throw badBbox(given, 'has its lower height above its upper one');
  if (Math.abs(south) > 90 || Math.abs(north) > 90)
    throw badBbox(given, `has a latitude beyond 90; ${swapHint(numbers, [west, south, east, north])}`);
  if (Math.abs(west) > 180 || Math.abs(east) > 180) throw badBbox(given, 'has a longitude beyond 180');
  if (south > north) throw badBbox(given, 'has its south above its north');
  return [west, south, east, north];
}

function swapHint(numbers: readonly number[], [west, south, east, north]: Bbox): string {
  const order = numbers.length === 4 ? [1, 0, 3, 2] : [1, 0, 2, 4, 3, 5];
  const corners = [
    [west, south],
    [east, north],
  ] as const;
  return axisOrderHint(corners, order.map((i) => numbers[i]).join(','));
}
