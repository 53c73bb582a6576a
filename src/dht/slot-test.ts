import type { GridName } from '../geocode/index.js';
import { type PrefixLengths, slotOf } from './slots.js';

/** Places of which the slots are known; more than any region has. */
const MOST_KNOWN = 100_000;

/** Whether the slot of a cell is wanted. Neighbours in a list are mostly of one slot, which is worked out once. */
export function slotTest(
  wants: (slot: number) => boolean,
  prefixLengths: PrefixLengths,
): (cell: { grid: GridName; geocode: string }) => boolean {
  const known = new Map<string, boolean>();
  return ({ grid, geocode }) => {
    const length = prefixLengths[grid];
    const place = `${grid}/${geocode.slice(0, length)}`;
    let answer = known.get(place);
    if (answer === undefined) {
      answer = wants(slotOf(grid, geocode, length));
      if (known.size < MOST_KNOWN) known.set(place, answer);
    }
    return answer;
  };
}
