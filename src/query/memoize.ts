/** Caches of results that are valid until tiles change. Cached results are shared and must not be changed. */
import { type OwnerQueries, type OwnerShare, WHOLE_INDEX } from '../dht/index.js';
import type { ColumnIndex } from '../storage/index.js';

/** Caches the results of `find`, which reads the index as it is at the time of the call, until the index changes. */
export function memoizePerVersion<T>(
  find: (index: ColumnIndex, share: OwnerShare) => Promise<T>,
): (index: ColumnIndex, share?: OwnerShare) => Promise<T> {
  const cache = new WeakMap<ColumnIndex, { changes: number; answers: Map<string, Promise<T>> }>();
  return (index, share = WHOLE_INDEX) => {
    const { changes } = index;
    let last = cache.get(index);
    if (last?.changes !== changes) {
      last = { changes, answers: new Map() };
      cache.set(index, last);
    }
    const { answers } = last;
    const answer = answers.get(share.key) ?? find(index, share);
    answers.set(share.key, answer);
    return answer;
  };
}

/**
 * Caches the result of `ask` until the tiles of an owner node change. Concurrent callers share one call. Errors and answers that lack
 * slots are not cached.
 */
export function memoizeUntilChange<T extends { unanswered?: number[] }>(
  owners: Pick<OwnerQueries, 'changes'>,
  ask: () => Promise<T>,
): () => Promise<T> {
  let kept: { changes: number; answer: Promise<T> } | undefined;
  return () => {
    const { changes } = owners;
    if (kept?.changes === changes) return kept.answer;
    const asked = { changes, answer: ask() };
    kept = asked;
    const forget = () => {
      if (kept === asked) kept = undefined;
    };
    asked.answer.then(({ unanswered }) => {
      if (unanswered) forget();
    }, forget);
    return asked.answer;
  };
}
