/** Concatenates the patches of several cells. */
import type { Patches } from './patches.js';

const MEMBERS = ['inputs', 'targets', 'targetMask', 'cloud'] as const;

/** Concatenates at least one set of patches of one model. The sets become views of the result, so that the data are in memory once. */
export function concatPatches(sets: Patches[]): Patches {
  const joined = { ...sets[0], count: sets.reduce((sum, { count }) => sum + count, 0) };
  for (const member of MEMBERS) {
    if (sets[0][member] === undefined) continue;
    const all = new Float32Array(sets.reduce((sum, set) => sum + set[member]!.length, 0));
    let from = 0;
    for (const set of sets) {
      const part = all.subarray(from, from + set[member]!.length);
      part.set(set[member]!);
      set[member] = part;
      from += part.length;
    }
    joined[member] = all;
  }
  return joined;
}
