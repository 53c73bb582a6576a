import type { DateError } from '../evaluation/index.js';

/** Returns one entry for each time, the earliest first. Dates with the same time are parts of one overpass, weighted by their patches. */
export function mergeDates(dates: readonly DateError[]): DateError[] {
  const merged = new Map<number, DateError>();
  for (const date of dates) {
    const time = Date.parse(date.datetime);
    const known = merged.get(time);
    const patches = date.patches + (known?.patches ?? 0);
    const error = known ? (known.error * known.patches + date.error * date.patches) / patches : date.error;
    merged.set(time, { datetime: date.datetime, error, patches });
  }
  return [...merged.keys()].sort((a, b) => a - b).map((time) => merged.get(time)!);
}
