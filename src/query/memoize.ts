import { type OwnerShare, WHOLE_INDEX } from '../dht/index.js';
import type { ColumnIndex } from '../storage/index.js';

/** `find`, whose answers are kept until the index changes. They are shared and must not be changed. */
export function memoizePerVersion<T>(
  find: (index: ColumnIndex, share: OwnerShare) => T,
): (index: ColumnIndex, share?: OwnerShare) => T {
  const known = new WeakMap<ColumnIndex, { changes: number; answers: Map<string, T> }>();
  return (index, share = WHOLE_INDEX) => {
    const { changes } = index;
    let last = known.get(index);
    if (last?.changes !== changes) {
      last = { changes, answers: new Map() };
      known.set(index, last);
    }
    const { answers } = last;
    const answer = answers.get(share.key) ?? find(index, share);
    answers.set(share.key, answer);
    return answer;
  };
}
