/** Questions about tiles, to those who have them: a node that is alone asks itself, one of a cluster the owners of the slots. */
import type { Check } from '../../json-schema.js';
import type { RunFilter, Selection } from '../../storage/index.js';

/** Where the tiles of a question lie; everywhere where nothing is given. */
export type QueryBounds = Pick<Selection, 'ranges' | 'ids'>;

/** Which tiles of a node are asked for. */
export interface QueryScope {
  /** Tests whether rows of the index are of these tiles; undefined if all are. */
  only: RunFilter | undefined;
  /** Equal for equal shares. */
  key: string;
  /** The commit as of which to answer; undefined where a node is alone. */
  seq: number | undefined;
}

/**
 * What a node answers of its own tiles. It reads the index before it first waits for anything: until then the index is as of the commit of the
 * share. Records it then gets by `Storage.getTiles` as of that commit too. Question and answer are plain JSON: infinite numbers and NaN
 * arrive as null.
 */
export type QueryHandler<Q, A> = (question: Q, share: QueryScope) => Promise<A>;

export interface GatheredAnswers<A> {
  answers: A[];
  /** Slots for which nobody answers, ascending: the answers lack their tiles. */
  unanswered: number[];
  /** The commit as of which all have answered; undefined where a node is alone. */
  seq: number | undefined;
}

/**
 * Asks all who have tiles within `bounds`; together they answer for each tile once, all as of one commit: `seq`, where it is given and
 * not too long ago, else the last one that is applied here. Throws what an answer throws.
 */
export type ScatterQuery<Q, A> = (
  question: Q,
  bounds?: () => QueryBounds,
  seq?: number,
) => Promise<GatheredAnswers<A>>;

/** A kind of question. The checks are of what other nodes send: a wrong question is refused, and a wrong answer counts as none. */
export interface QueryKind {
  name: string;
  question: Check;
  answer: Check;
  /** Milliseconds after which a node that does not answer is taken for dead if other owners can be asked. */
  timeoutMs?: number;
}

export interface OwnerQueries {
  /** Goes up with every change of what they hold: what they have answered at the same number still holds. */
  readonly changes: number;
  /** Adds a kind of question that this node answers by `answer`. Returns the function that asks all owners. */
  register<Q, A>(kind: QueryKind, answer: QueryHandler<Q, A>): ScatterQuery<Q, A>;
}

/** All that a node holds. */
export const WHOLE_INDEX: QueryScope = { only: undefined, key: '', seq: undefined };

/** The node itself, which is alone. */
export function localQueries(index: { readonly changes: number }): OwnerQueries {
  return {
    get changes() {
      return index.changes;
    },
    register: (_kind, answer) => async (question) => ({
      answers: [await answer(question, WHOLE_INDEX)],
      unanswered: [],
      seq: undefined,
    }),
  };
}
