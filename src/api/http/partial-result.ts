import type { PartialAnswer } from '../../query/index.js';

/** Members of an answer that say that it lacks tiles; none where it lacks nothing. */
export function partialMembers({ unanswered }: PartialAnswer) {
  return unanswered && { partial: true, unansweredSlots: unanswered };
}
