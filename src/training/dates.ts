/** When the dates of a place were observed, and which of them may be one pass of a satellite. */

const DAY_MS = 86_400_000;

/** Acquisitions at most this far apart may be the same pass. */
export const SAME_PASS_MS = 3 * DAY_MS;

/** When a date was observed, milliseconds since 1970. */
export interface Dated {
  time: number;
  /** The last observation of a composite of several days. Default: `time`. */
  end?: number;
}

export const endOf = ({ time, end = time }: Dated): number => end;

/** The dates that a tile holds. */
export const datedOf = ({ start, end }: { start: number; end?: number }): Dated => ({ time: start, end });

/** Milliseconds between two dates; 0 if their periods overlap. */
export const timeBetween = (a: Dated, b: Dated): number =>
  Math.max(0, Math.max(a.time, b.time) - Math.min(endOf(a), endOf(b)));

/** The day in UTC. */
export const dayOf = (time: number): string => new Date(time).toISOString().slice(0, 10);

/** True for a composite: it covers more than one day, so other dates may show some of its observations. */
export const isComposite = (date: Dated): boolean => endOf(date) - date.time > DAY_MS;

/** True if a date covers a day, such as 2020-06-30. */
export const hasDay = (date: Dated, day: string): boolean =>
  dayOf(date.time) <= day && dayOf(endOf(date)) >= day;

/** The day of a date in UTC, such as 2020-06-30, or the days of a composite, such as 2020-06-01/2020-06-30. */
export const daysOf = (date: Dated): string =>
  isComposite(date) ? `${dayOf(date.time)}/${dayOf(endOf(date))}` : dayOf(date.time);

/** The time of a date, RFC 3339, or the times of the first and last observation of a composite: `start/end`. */
export function timesOf(date: Dated): string {
  const times = isComposite(date) ? [date.time, endOf(date)] : [date.time];
  return times.map((time) => new Date(time).toISOString()).join('/');
}

/** Reads a time or day of RFC 3339, or two of them as an interval: `start/end`. */
export function parseDated(text: string): Dated {
  const [start, end] = text.split('/');
  return { time: Date.parse(start!), ...(end !== undefined && { end: Date.parse(end) }) };
}

export const isSamePass = (a: Dated, b: Dated): boolean => timeBetween(a, b) <= SAME_PASS_MS;

/** Two days, as `daysOf`. */
export type DayPair = [day: string, other: string];

/** Returns for each day or days, as `daysOf`, the first of their pass: days within three days of the first are one. */
export function passesOf(days: Iterable<string>): Map<string, string> {
  const passes = new Map<string, string>();
  let first: string | undefined;
  for (const day of [...new Set(days)].sort()) {
    if (first === undefined || !isSamePass(parseDated(first), parseDated(day))) first = day;
    passes.set(day, first);
  }
  return passes;
}
