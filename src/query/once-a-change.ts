import type { ColumnIndex } from '../storage/index.js';

/** `find`, whose answer is kept until the index changes. The answer is shared and must not be changed. */
export function onceAChange<T>(find: (index: ColumnIndex) => T): (index: ColumnIndex) => T {
  const known = new WeakMap<ColumnIndex, { changes: number; answer: T }>();
  return (index) => {
    const { changes } = index;
    const last = known.get(index);
    if (last?.changes === changes) return last.answer;
    const answer = find(index);
    known.set(index, { changes, answer });
    return answer;
  };
}
