import type { PartialAnswer } from '../../query/index.js';

/** Members that mark an answer as incomplete. No members if the answer is complete. */
export function partialMembers({ unanswered }: PartialAnswer) {
  return unanswered && { partial: true, unansweredSlots: unanswered };
}
