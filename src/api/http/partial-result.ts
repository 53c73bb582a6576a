import type { Partly } from '../../query/index.js';

/** Members of an answer that say that it lacks tiles; none where it lacks nothing. */
export function partial({ unanswered }: Partly) {
  return unanswered && { partial: true, unansweredSlots: unanswered };
}
