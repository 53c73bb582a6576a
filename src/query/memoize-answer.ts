import type { OwnerQueries } from '../dht/index.js';

/**
 * `ask`, whose answer is kept until what the owners hold changes, and asked for once by all who want it meanwhile. One that lacks slots is
 * not kept. The answer is shared and must not be changed.
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
