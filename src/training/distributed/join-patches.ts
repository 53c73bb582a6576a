/** The patches of several places as one set. */
import type { PatchSet } from '../patches.js';

/** All must be cut for one model. At least one. */
export function joinPatches(sets: PatchSet[]): PatchSet {
  const [{ size, inputBands, targetBands }] = sets;
  const joined = (of: (set: PatchSet) => Float32Array | undefined) => {
    const parts = sets.flatMap((set) => of(set) ?? []);
    const values = new Float32Array(parts.reduce((sum, { length }) => sum + length, 0));
    let from = 0;
    for (const part of parts) {
      values.set(part, from);
      from += part.length;
    }
    return values;
  };
  return {
    ...{ size, inputBands, targetBands },
    count: sets.reduce((sum, { count }) => sum + count, 0),
    inputs: joined((set) => set.inputs),
    targets: joined((set) => set.targets),
    ...(sets[0].counts && { counts: joined((set) => set.counts) }),
    ...(sets[0].cloud && { cloud: joined((set) => set.cloud) }),
  };
}
