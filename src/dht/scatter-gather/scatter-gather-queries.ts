/** Queries about tiles for the nodes that hold them: a single node asks itself, a cluster node asks the owners of the slots. */

import type { RunFilter, Selection } from '../../storage/index.js';
import type { Check } from '../../utils/json-schema.js';

/** The cells and ids that a query is limited to; without them, all tiles. */
export type QueryBounds = Pick<Selection, 'ranges' | 'ids'>;

/** The tiles of a node that a query is about. */
export interface QueryScope {
  /** Tests whether rows of the index are among these tiles; undefined if all are. */
  only: RunFilter | undefined;
  /** Equal for equal scopes. */
  key: string;
  /** The commit as of which to answer; undefined on a single node. */
  seq: number | undefined;
}

/**
 * Answers a query for the tiles of this node. It must read the index before it first waits: until then, the index is as of the commit of
 * the scope. `Storage.getTiles` also returns records as of that commit. Question and answer are plain JSON: infinite numbers and NaN
 * arrive as null.
 */
export type QueryHandler<Q, A> = (question: Q, scope: QueryScope) => Promise<A>;

export interface GatheredAnswers<A> {
  answers: A[];
  /** Slots without an answer, ascending; the answers lack their tiles. */
  unanswered: number[];
  /** The commit as of which all nodes have answered; undefined on a single node. */
  seq: number | undefined;
}

/**
 * Asks all nodes with tiles within `bounds`. Together they answer once for each tile, all as of one commit: `seq` if it is given and
 * recent enough, otherwise the last commit that this node has applied. Throws the error of any answer.
 */
export type ScatterQuery<Q, A> = (
  question: Q,
  bounds?: () => QueryBounds,
  seq?: number,
) => Promise<GatheredAnswers<A>>;

/** A kind of query. The checks apply to messages of other nodes: an invalid question is refused, and an invalid answer counts as none. */
export interface QueryKind {
  name: string;
  question: Check;
  answer: Check;
  /** Milliseconds after which a node that does not answer is considered dead if other owners can be asked. */
  timeoutMs?: number;
}

export interface OwnerQueries {
  /** Increases with every change of the data: answers at the same number are still valid. */
  readonly changes: number;
  /** Registers a kind of query, which this node answers with `answer`. Returns the function that asks all owners. */
  register<Q, A>(kind: QueryKind, answer: QueryHandler<Q, A>): ScatterQuery<Q, A>;
}

/** The scope of all tiles of a node. */
export const WHOLE_INDEX: QueryScope = { only: undefined, key: '', seq: undefined };

/** Queries on a single node. */
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
