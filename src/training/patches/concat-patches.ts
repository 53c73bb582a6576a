/** The patches of several places as one set. */
import type { Patches } from './patches.js';

const PLANES = ['inputs', 'targets', 'targetMask', 'cloud'] as const;

/**
 * Of sets that were cut for one model, at least one. The sets become parts of the joined one, so that all is in memory once.
 */
export function concatPatches(sets: Patches[]): Patches {
  const joined = { ...sets[0], count: sets.reduce((sum, { count }) => sum + count, 0) };
  for (const planes of PLANES) {
    if (sets[0][planes] === undefined) continue;
    const all = new Float32Array(sets.reduce((sum, set) => sum + set[planes]!.length, 0));
    let from = 0;
    for (const set of sets) {
      const part = all.subarray(from, from + set[planes]!.length);
      part.set(set[planes]!);
      set[planes] = part;
      from += part.length;
    }
    joined[planes] = all;
  }
  return joined;
}
