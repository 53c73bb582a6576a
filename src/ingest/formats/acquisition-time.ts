/** When a scene was taken, from the texts that flags, tags, STAC Items and file names have for it. */
import { badOption } from '../errors.js';
import type { DescribeOptions } from '../scene.js';

/** Milliseconds since 1970, both ends included. */
export interface TimeSpan {
  start: number;
  end: number;
}

/** RFC 3339 or a plain date; without a zone it is UTC. NaN for what is none, also for days that do not exist. */
export function parseTime(text: string): number {
  const day = /^\d{4}-\d\d-\d\d/.exec(text)?.[0];
  const midnight = Date.parse(`${day}T00:00:00Z`);
  // Date.parse takes 31 February for 3 March.
  if (Number.isNaN(midnight) || !new Date(midnight).toISOString().startsWith(`${day}T`)) return NaN;
  if (text === day) return midnight;
  if (!/^\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d/.test(text)) return NaN;
  const zoned = /[Zz]$|[+-]\d\d:\d\d$/.test(text) ? text : `${text}Z`;
  return Date.parse(zoned.replace(' ', 'T').toUpperCase());
}

/** A time, or `start/end`; null for anything else. */
export function parseSpan(text: string): TimeSpan | null {
  const parts = text.split('/');
  const [start, end = start] = parts.map(parseTime);
  return parts.length <= 2 && start <= end ? { start, end } : null;
}

/** What --datetime says; undefined without the flag. Throws TW_INGEST_BAD_OPTION. */
export function flaggedTime({ datetime }: DescribeOptions): TimeSpan | undefined {
  if (datetime === undefined) return undefined;
  const span = parseSpan(datetime);
  if (!span) throw badOption('--datetime', datetime, 'a time such as 2024-06-01T10:30:00Z, or start/end');
  return span;
}

/**
 * The range of time in the inventory metadata of NASA's EOSDIS, as MODIS (RANGEBEGINNINGDATE) and VIIRS (RangeBeginningDate)
 * name it: date and time apart, without a zone. Null where it has no beginning.
 */
export function spanOfInventory(metadata: Record<string, string>): TimeSpan | null {
  const get = (name: string) => metadata[name] ?? metadata[name.toUpperCase()];
  const [start, end] = ['RangeBeginning', 'RangeEnding'].map((edge) =>
    parseTime(`${get(`${edge}Date`)}T${get(`${edge}Time`) ?? '00:00:00'}`),
  );
  if (Number.isNaN(start)) return null;
  return { start, end: end >= start ? end : start };
}

/** The first YYYY-MM-DD or YYYYMMDD of the years 1900 to 2100 in a file name, as YYYY-MM-DD; undefined where there is none. */
export function dateInName(name: string): string | undefined {
  for (const [, year, , month, day] of name.matchAll(
    /(?<!\d)((?:19|20)\d\d|2100)(-?)(\d\d)\2(\d\d)(?!\d)/g,
  )) {
    const date = `${year}-${month}-${day}`;
    if (!Number.isNaN(parseTime(date))) return date;
  }
  return undefined;
}

/** 20130914T000000Z, for ids. */
export const stamp = (time: number) => new Date(time).toISOString().replace(/[-:]|\.\d+/g, '');
