/** Parses acquisition times in options, tags, STAC Items and file names. */
import { badDatetime, parseDatetime } from '../../query/index.js';
import { badOption } from '../errors.js';
import type { DescribeOptions } from '../scene.js';

/** Milliseconds since 1970, both ends included. */
export interface AcquisitionTime {
  start: number;
  end: number;
}

/** RFC 3339 or a plain date; UTC without a zone. NaN for other texts and for days that do not exist. */
export function parseTime(text: string): number {
  const day = /^\d{4}-\d\d-\d\d/.exec(text)?.[0];
  const midnight = Date.parse(`${day}T00:00:00Z`);
  // Date.parse accepts 31 February as 3 March.
  if (Number.isNaN(midnight) || !new Date(midnight).toISOString().startsWith(`${day}T`)) return NaN;
  if (text === day) return midnight;
  if (!/^\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d/.test(text)) return NaN;
  const zoned = /[Zz]$|[+-]\d\d:\d\d$/.test(text) ? text : `${text}Z`;
  return Date.parse(zoned.replace(' ', 'T').toUpperCase());
}

/** A time, or `start/end`; null for anything else. */
export function parseTimeRange(text: string): AcquisitionTime | null {
  const parts = text.split('/');
  const [start, end = start] = parts.map(parseTime);
  return parts.length <= 2 && start <= end ? { start, end } : null;
}

/** The value of --datetime; undefined without the option. Throws TW_INGEST_BAD_OPTION. */
export function datetimeOption({ datetime }: DescribeOptions): AcquisitionTime | undefined {
  if (datetime === undefined) return undefined;
  const wanted = 'a time such as 2024-06-01T10:30:00Z, a day, a month or a year, or start/end';
  try {
    const text = datetime.split('/').map(withUtcZone).join('/');
    const { start, end } = parseDatetime(text, { dates: 'periods' });
    if (start === undefined || end === undefined)
      throw badOption('--datetime', datetime, `${wanted} with both of them`);
    // A day alone is its midnight, like a day in the name of a file.
    return /^\d{4}-\d\d-\d\d$/.test(text) ? { start, end: start } : { start, end };
  } catch (error) {
    throw badDatetime.is(error) ? badOption.because(error, '--datetime', datetime, wanted) : error;
  }
}

/** A time without a zone is UTC, as in the metadata of products; its seconds may be missing. */
const withUtcZone = (text: string) =>
  text.replace(
    /^(\d{4}-\d\d-\d\d)[t ](\d\d:\d\d)(:\d\d(?:\.\d+)?)?(z|[+-]\d\d:\d\d)?$/i,
    (_, day, clock, seconds = ':00', zone = 'Z') => `${day}T${clock}${seconds}${zone}`,
  );

/**
 * The time range in the inventory metadata of NASA's EOSDIS, in the spelling of MODIS (RANGEBEGINNINGDATE) or VIIRS
 * (RangeBeginningDate): date and time are separate, without a zone. Null if it has no beginning.
 */
export function parseEosdisTimeRange(metadata: Record<string, string>): AcquisitionTime | null {
  const get = (name: string) => metadata[name] ?? metadata[name.toUpperCase()];
  const [start, end] = ['RangeBeginning', 'RangeEnding'].map((edge) =>
    parseTime(`${get(`${edge}Date`)}T${get(`${edge}Time`) ?? '00:00:00'}`),
  );
  return timeRange(start, end);
}

/** From `start` to `end`, or `start` alone if `end` is NaN or earlier. Null if `start` is NaN. */
export function timeRange(start: number, end: number): AcquisitionTime | null {
  return Number.isNaN(start) ? null : { start, end: end >= start ? end : start };
}

export const DAY_MS = 86_400_000;

/** YYYY-MM-DD or YYYYMMDD, and hh:mm:ss, hh-mm-ss or hhmmss after a T; the Z may be missing. */
const DATE_IN_NAME =
  /(?<!\d)((?:19|20)\d\d)(-?)(\d\d)\2(\d\d)(?:T([01]\d|2[0-3])([:-]?)([0-5]\d)(?:\6([0-5]\d))?(?=Z|\D|$)|(?!\d))/gi;

/**
 * The days from 1900 to tomorrow in a file name, each once, as times. The time of day is that of the name if it is the same at
 * each occurrence of the day, else midnight (UTC).
 */
export function timesInName(name: string): number[] {
  const days = new Map<string, Set<string>>();
  for (const [, year, , month, day, hour, , minute, second = '00'] of name.matchAll(DATE_IN_NAME)) {
    const date = `${year}-${month}-${day}`;
    if (!(parseTime(date) <= Date.now() + DAY_MS)) continue;
    const clocks = days.get(date) ?? new Set();
    if (hour !== undefined) clocks.add(`T${hour}:${minute}:${second}Z`);
    days.set(date, clocks);
  }
  return [...days].map(([date, clocks]) => parseTime(clocks.size === 1 ? date + [...clocks].join('') : date));
}

/** 20130914T000000Z, for ids. */
export const compactTimestamp = (time: number) => new Date(time).toISOString().replace(/[-:]|\.\d+/g, '');
