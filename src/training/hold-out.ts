/**
 * Which ground and which dates of a cell are held out for validation.
 *
 * Ground: one side of the covered part of the cell, about a quarter of it. It keeps a gap to the training ground of its cell and to the
 * edges of the cell, as wide as the receptive field of the model. So it is also at least as far away from the training ground of every
 * other cell, in any job and mode.
 *
 * Dates: a job has one date from which on dates are held out, the same for all of its cells (`validationDate`).
 */
import type { Window } from '../raster/index.js';
import { plural } from '../utils/text.js';
import { type Dated, type DayPair, dayOf, endOf, isSamePass, SAME_PASS_MS } from './dates.js';

const DAY_MS = 86_400_000;
/** Pairs of dates that a warning names. */
const MAX_COPIES = 3;

export type Side = 'eastern' | 'western' | 'southern' | 'northern';

/** Windows of pixels of a cell. They do not overlap. */
export interface SpatialSplit {
  side: Side;
  train: Window;
  /** Part of the training side on which the best epoch is chosen. It is adjacent to `train`. */
  selection: Window;
  /** At least the gap away from the other two windows and from the edges of the cell. */
  validation: Window;
}

const VALIDATION_FRACTION = 0.25;
/** Fraction of the training ground that is used for selection. */
export const SELECTION_FRACTION = 1 / 6;

/**
 * Returns the possible splits of `covered`, a window of a cell of `width` x `height` pixels, for patches of `patchSize` pixels. Sides
 * without room for a patch are omitted. `gap`: pixels around the validation ground.
 */
export function spatialSplits(
  { width, height }: { width: number; height: number },
  covered: Window,
  patchSize: number,
  gap: number,
): SpatialSplit[] {
  const columns: Axis = { length: width, from: covered.column, to: covered.column + covered.width };
  const rows: Axis = { length: height, from: covered.row, to: covered.row + covered.height };
  const across = (x: Span, y: Span) => ({ column: x.from, row: y.from, width: x.length, height: y.length });
  const down = (y: Span, x: Span) => across(x, y);
  const sides = [
    { side: 'eastern', division: holdOutEnd(columns, rows, patchSize, gap), window: across },
    { side: 'western', division: holdOutBeginning(columns, rows, patchSize, gap), window: across },
    { side: 'southern', division: holdOutEnd(rows, columns, patchSize, gap), window: down },
    { side: 'northern', division: holdOutBeginning(rows, columns, patchSize, gap), window: down },
  ] as const;
  return sides.flatMap(({ side, division, window }) => {
    if (!division) return [];
    const { along, over } = division;
    return {
      side,
      train: window(along.train, over.train),
      selection: window(along.train, over.selection),
      validation: window(along.validation, over.validation),
    };
  });
}

interface Span {
  from: number;
  length: number;
}

/** Length of a cell along one axis, and its covered range [from, to), in pixels. */
interface Axis {
  length: number;
  from: number;
  to: number;
}

/** Split along the axis at an end of which a side is held out, and along the other axis. */
interface Division {
  along: { validation: Span; train: Span };
  over: { validation: Span; train: Span; selection: Span };
}

function holdOutEnd(along: Axis, over: Axis, patchSize: number, gap: number): Division | undefined {
  const part = ({ from, to }: Axis, share: number) =>
    patchSize * Math.max(1, Math.round(Math.floor((to - from) / patchSize) * share));
  const held = part(along, VALIDATION_FRACTION);
  const selected = part(over, SELECTION_FRACTION);
  const from = Math.min(along.to, along.length - gap) - held;
  const validation = spanOf(Math.max(over.from, gap), Math.min(over.to, over.length - gap));
  const train = spanOf(over.from, over.to - selected);
  const division = {
    along: { validation: { from, length: held }, train: spanOf(along.from, from - gap) },
    over: { validation, train, selection: { from: over.to - selected, length: selected } },
  };
  const shortest = Math.min(division.along.train.length, validation.length, train.length);
  return shortest < patchSize ? undefined : division;
}

function holdOutBeginning(along: Axis, over: Axis, patchSize: number, gap: number): Division | undefined {
  const { length, from, to } = along;
  const division = holdOutEnd({ length, from: length - to, to: length - from }, over, patchSize, gap);
  const mirrored = (span: Span) => ({ from: length - span.from - span.length, length: span.length });
  return (
    division && {
      along: {
        validation: mirrored(division.along.validation),
        train: mirrored(division.along.train),
      },
      over: division.over,
    }
  );
}

const spanOf = (from: number, to: number): Span => ({ from, length: to - from });

/** Dates that a job holds out for validation: from a time on (milliseconds since 1970), or some days (such as 2020-06-30). */
export type HeldOutDates = { from: number } | { days: readonly string[] };

/** The dates that a task holds out; undefined if it holds out only ground. Named days come before a time. */
export const heldOutDates = (task: {
  validationFrom?: number;
  holdOut?: readonly string[];
}): HeldOutDates | undefined =>
  task.holdOut
    ? { days: task.holdOut }
    : task.validationFrom === undefined
      ? undefined
      : { from: task.validationFrom };

/** True for a date that begins at or after the first held-out time, or on a held-out day. */
export const isHeldOut = (dates: HeldOutDates, time: number): boolean =>
  'from' in dates ? time >= dates.from : dates.days.includes(dayOf(time));

/** True for a held-out date, and for one within three days of a date that may be held out, which may be the same pass. */
export const isNearHeldOut = (dates: HeldOutDates, date: Dated): boolean =>
  'from' in dates
    ? endOf(date) >= dates.from - SAME_PASS_MS
    : dates.days.some((day) => {
        const time = Date.parse(day);
        return isSamePass(date, { time, end: time + DAY_MS - 1 });
      });

/** Returns a warning for pairs of days on which places have the same image; `[]` without one. */
export function copyWarnings(copies: readonly DayPair[]): string[] {
  if (copies.length === 0) return [];
  const places = new Map<string, number>();
  for (const pair of copies) {
    const days = pair.toSorted().join(' and ');
    places.set(days, (places.get(days) ?? 0) + 1);
  }
  const named = Array.from(places, ([days, count]) => `${days} (${plural(count, 'place')})`).sort();
  const more = named.length > MAX_COPIES ? ` and ${named.length - MAX_COPIES} other pairs` : '';
  return [
    `dates with the same images, as if one scene had been ingested with two dates: ${named.slice(0, MAX_COPIES).join(', ')}${more}; scores on such a date are too good if the other one trains or is history`,
  ];
}

/**
 * Returns the first held-out time of a job, from the times of all tiles of each of its cells. At or after this time are as nearly as
 * possible a quarter of the tiles of cells with several dates. Undefined if no cell has several dates.
 */
export function validationDate(cells: Iterable<readonly number[]>): number | undefined {
  const counts = new Map<number, number>();
  for (const times of cells) {
    const distinct = new Set(times);
    if (distinct.size > 1) for (const time of distinct) counts.set(time, (counts.get(time) ?? 0) + 1);
  }
  const times = [...counts.keys()].sort((a, b) => b - a);
  const total = times.reduce((sum, time) => sum + counts.get(time)!, 0);
  let best: { time: number; apart: number } | undefined;
  let held = 0;
  // The earliest time would leave no tiles to train on.
  for (const time of times.slice(0, -1)) {
    held += counts.get(time)!;
    const apart = Math.abs(held / VALIDATION_FRACTION - total);
    if (!best || apart <= best.apart) best = { time, apart };
  }
  return best?.time;
}
