/** Queries to the owners of slots: distributed, answered as of one commit, and repeated at other owners if nodes fail. */

import {
  ERROR_DOCUMENT_SCHEMA,
  type ErrorDocument,
  fromErrorDocument,
  TilewrightError,
  toErrorDocument,
} from '../errors.js';
import {
  type ColumnIndex,
  commitTooOld,
  type RunFilter,
  type Selection,
  type Storage,
} from '../storage/index.js';
import { type Check, COUNT, messageCheck } from '../utils/json-schema.js';
import type { Cluster } from './cluster.js';
import { badQuery, commitNotInLog, peerUnknown, replicaBehind, slotNotHeld, unknownQuery } from './errors.js';
import type { PeerClient } from './peers.js';
import type { Owner, OwnerState, Placement } from './placement.js';
import { ALL_SLOTS, candidateSlots, SlotSet, slotTest } from './slots.js';

/** The slots that one node is asked for. */
interface NodeSlots {
  node: string;
  /** Ascending. */
  slots: number[];
}

interface QueryRoute {
  byNode: NodeSlots[];
  /** Slots without a node left to ask, ascending. */
  unanswered: number[];
}

/**
 * Distributes slots among owners that can answer: `self` if it is an owner, so that local tiles are not fetched, otherwise a node that
 * is asked anyway, otherwise the first owner. Nodes in `avoided` are not asked.
 */
export function routeQuery(
  { slots: ownersOf }: Pick<Placement, 'slots'>,
  slots: Iterable<number>,
  self: string,
  avoided: ReadonlySet<string> = new Set(),
): QueryRoute {
  const slotsByNode = new Map<string, number[]>();
  const unanswered: number[] = [];
  for (const slot of slots) {
    const node = chooseOwner(ownersOf[slot]!, self, avoided, slotsByNode);
    if (node === undefined) unanswered.push(slot);
    else {
      const known = slotsByNode.get(node);
      if (known) known.push(slot);
      else slotsByNode.set(node, [slot]);
    }
  }
  return { byNode: [...slotsByNode].map(([node, slots]) => ({ node, slots })), unanswered };
}

/** A search may route every slot, so this creates no objects. */
function chooseOwner(
  owners: readonly Owner[],
  self: string,
  avoided: ReadonlySet<string>,
  asked: ReadonlyMap<string, unknown>,
): string | undefined {
  let first: string | undefined;
  let known: string | undefined;
  for (const wanted of READABLE_STATES)
    for (const { node, state } of owners) {
      if (state !== wanted || avoided.has(node)) continue;
      if (node === self) return self;
      first ??= node;
      if (known === undefined && asked.has(node)) known = node;
    }
  return known ?? first;
}

/** In the order of preference. */
const READABLE_STATES: readonly OwnerState[] = ['available', 'leaving'];

/** A query to an owner. */
export interface OwnerRequest {
  kind: string;
  question: unknown;
  /** The slots whose tiles the query is about, as text of a `SlotSet`. */
  slots: string;
  /** The commit as of which to answer. */
  seq: number;
  /** How long the owner may wait for that commit, ms. */
  wait: number;
}

interface Cancellable {
  /** Ends the query, whose answer nobody needs any more. */
  signal?: AbortSignal | undefined;
}

type Question = Pick<OwnerRequest, 'kind' | 'question'> & Cancellable;

/** The reply of an owner. An error of the question itself is a valid reply, because other owners would return the same. */
interface OwnerReply {
  answer?: unknown;
  error?: ErrorDocument;
  /** The owner cannot answer as of the requested commit, only as of this one and later ones. */
  oldest?: number;
}

export const OWNER_QUERY_PATH = '/cluster/internal/ask';

/** Time limit for an owner while other owners could answer, and for the last ones; and the part of it that may be spent on catching up. */
const OWNER_TIMEOUT_MS = 500;
const CATCH_UP_MS = 500;
const LAST_OWNER_TIMEOUT_MS = 10_000;
const LAST_CATCH_UP_MS = 5000;
/** How often a query is retried at a later commit. An owner that got a slot after the requested commit cannot answer as of that commit. */
const MAX_COMMITS_TRIED = 3;

interface PartialResult {
  answers: unknown[];
  unanswered: number[];
  /** Errors of nodes that were reached; other nodes may be able to answer. */
  errors: TilewrightError[];
  /** The earliest commit as of which nodes can answer that could not answer as of the requested one; 0 if there are none. */
  oldest: number;
}

const checkReply = messageCheck({
  type: 'object',
  anyOf: [{ required: ['answer'] }, { required: ['error'] }, { required: ['oldest'] }],
  properties: { error: ERROR_DOCUMENT_SCHEMA, oldest: COUNT },
});

interface RegisteredKind {
  answer: QueryHandler<unknown, unknown>;
  prepare: NonNullable<QueryKind['prepare']>;
  checkQuestion: Check;
  /** Checks an `OwnerReply`. */
  checkReply: Check;
}

export class ScatterGather implements OwnerQueries {
  readonly asksOtherNodes = true;
  private readonly kinds = new Map<string, RegisteredKind>();

  constructor(
    private readonly storage: Storage,
    private readonly cluster: Cluster,
    private readonly peers: PeerClient,
  ) {}

  get changes(): number {
    return this.cluster.replica.applied;
  }

  register<Q, A>(
    { name, question: checkQuestion, answer: checkAnswer, prepare, timeoutMs = OWNER_TIMEOUT_MS }: QueryKind,
    answer: QueryHandler<Q, A>,
  ): ScatterQuery<Q, A> {
    this.kinds.set(name, {
      answer: answer as QueryHandler<unknown, unknown>,
      prepare: prepare ?? (async () => {}),
      checkQuestion,
      checkReply: (reply) => {
        const fault = checkReply(reply);
        if (fault !== undefined) return fault;
        const { answer } = reply as OwnerReply;
        return answer === undefined ? undefined : checkAnswer(answer);
      },
    });
    return (question, bounds, { seq, signal } = {}) =>
      this.query<A>({ kind: name, question, signal }, bounds, timeoutMs, seq);
  }

  /**
   * Answers a query of another node. Throws TW_DHT_QUESTION, TW_DHT_BAD_QUESTION, TW_DHT_BAD_SLOTS, TW_DHT_BEHIND, TW_DHT_NOT_HELD, and
   * the reason of `signal` if that aborts while the query waits for its commit.
   */
  async handle(request: OwnerRequest, signal?: AbortSignal): Promise<OwnerReply> {
    const { kind, question } = request;
    const fault = this.registeredKind(kind).checkQuestion(question);
    if (fault !== undefined) throw badQuery(kind, fault);
    return this.answer({ ...request, signal });
  }

  /** Throws TW_DHT_QUESTION. */
  private registeredKind(kind: string): RegisteredKind {
    const known = this.kinds.get(kind);
    if (!known) throw unknownQuery(kind);
    return known;
  }

  private async answer({
    kind,
    question,
    slots,
    seq,
    wait,
    signal,
  }: OwnerRequest & Cancellable): Promise<OwnerReply> {
    const { replica, prefixLengths } = this.cluster;
    const { answer, prepare } = this.registeredKind(kind);
    const wanted = SlotSet.fromText(slots);
    // An error is that of the node, not an answer, but the asking node has prepared the question before.
    await prepare(question, signal);
    await replica.waitForCommit(seq, Math.min(wait, LAST_CATCH_UP_MS), signal);
    for (const slot of wanted) if (!replica.hasSlot(slot)) throw slotNotHeld(slot);
    const { index }: { index: ColumnIndex } = this.storage;
    const only = replica.hasOnly(wanted) ? undefined : slotTest(wanted, prefixLengths);
    const scope: QueryScope = { only, key: slots, seq, signal };
    try {
      return { answer: await index.asOf(seq, () => answer(question, scope)) };
    } catch (error) {
      if (commitTooOld.is(error)) return { oldest: index.oldest };
      if (!(error instanceof TilewrightError)) throw error;
      return { error: toErrorDocument(error) };
    }
  }

  /** All answers are as of one commit: `first`, or a later one if owners cannot answer as of `first`. */
  private async query<A>(
    question: Question,
    bounds: (() => QueryBounds) | undefined,
    timeoutMs: number,
    first = this.cluster.replica.applied,
  ): Promise<GatheredAnswers<A>> {
    const { replica, prefixLengths } = this.cluster;
    await this.registeredKind(question.kind).prepare(question.question, question.signal);
    const slots = [...(bounds ? candidateSlots(bounds(), prefixLengths) : ALL_SLOTS)];
    let seq = first;
    for (let tries = 1; ; tries++) {
      const { answers, unanswered, errors, oldest } = await this.queryAsOf(seq, question, slots, timeoutMs);
      const mayRetry = unanswered.length > 0 && oldest > 0 && tries < MAX_COMMITS_TRIED;
      if (!mayRetry || !(await this.hasApplied(oldest))) {
        if (unanswered.length > 0 && errors.length > 0) throw errors[0];
        return { answers: answers as A[], unanswered: unanswered.sort((a, b) => a - b), seq };
      }
      seq = replica.applied;
    }
  }

  /**
   * Waits up to LAST_CATCH_UP_MS for a commit that another node named; false if this node does not apply it in time. A node never answers
   * as of a commit that it has not applied, because its next answer could then be as of an earlier one.
   */
  private hasApplied(seq: number): Promise<boolean> {
    return this.cluster.replica.waitForNamedCommit(seq, LAST_CATCH_UP_MS).then(
      () => true,
      (error) => {
        if (replicaBehind.is(error) || commitNotInLog.is(error)) return false;
        throw error;
      },
    );
  }

  private async queryAsOf(
    seq: number,
    question: Question,
    slots: number[],
    timeoutMs: number,
  ): Promise<PartialResult> {
    const soon = await this.queryOwners({ ...question, seq, wait: CATCH_UP_MS }, slots, timeoutMs);
    if (soon.unanswered.length === 0 || soon.oldest > 0) return soon;
    // The remaining slots have no other owners to try, so this query waits longer.
    const request = { ...question, seq, wait: LAST_CATCH_UP_MS };
    const late = await this.queryOwners(request, soon.unanswered, Math.max(timeoutMs, LAST_OWNER_TIMEOUT_MS));
    return { ...late, answers: [...soon.answers, ...late.answers] };
  }

  /** Collects answers for slots, and the slots that no owner answers for. */
  private async queryOwners(
    question: Question & Pick<OwnerRequest, 'seq' | 'wait'>,
    slots: Iterable<number>,
    timeoutMs: number,
  ): Promise<PartialResult> {
    const result: PartialResult = { answers: [], unanswered: [], errors: [], oldest: 0 };
    const avoided = new Set<string>();
    for (let open = [...slots]; open.length > 0; ) {
      question.signal?.throwIfAborted();
      const route = routeQuery(this.cluster.placement, open, this.cluster.self, avoided);
      result.unanswered.push(...route.unanswered);
      open = [];
      await Promise.all(
        route.byNode.map(async ({ node, slots }) => {
          const request = { ...question, slots: new SlotSet(slots).toText() };
          const reply = await this.queryOne(node, request, timeoutMs).catch(
            (error): OwnerReply | undefined => {
              // Errors without a code are bugs and are rethrown.
              if (!(error instanceof TilewrightError)) throw error;
              // An owner with an earlier version does not know the query. It is running, so if no other owner answers, the search fails.
              return badQuery.is(error.cause) ? { error: toErrorDocument(error) } : undefined;
            },
          );
          if (reply && !reply.error && reply.oldest === undefined) {
            result.answers.push(reply.answer);
            return;
          }
          if (reply?.error) {
            const fault = fromErrorDocument(reply.error);
            if (fault.status < 500) throw fault;
            result.errors.push(fault);
          }
          result.oldest = Math.max(result.oldest, reply?.oldest ?? 0);
          avoided.add(node);
          open.push(...slots);
        }),
      );
    }
    return result;
  }

  private queryOne(
    node: string,
    { signal, ...request }: OwnerRequest & Cancellable,
    timeoutMs: number,
  ): Promise<OwnerReply> {
    if (node === this.cluster.self) return this.answer({ ...request, signal });
    const peer = this.cluster.peer(node);
    if (!peer) return Promise.reject(peerUnknown(node));
    return this.peers.call(
      peer,
      OWNER_QUERY_PATH,
      request,
      timeoutMs,
      this.registeredKind(request.kind).checkReply,
      signal,
    );
  }
}

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
  /** Aborted when nobody needs the answer any more. */
  signal?: AbortSignal | undefined;
}

/**
 * Answers a query for the tiles of this node. It must begin to read the index before it first waits: until then, the index is as of the
 * commit of the scope. `Storage.getTiles` also returns records as of that commit. Question and answer are plain JSON: infinite numbers and
 * NaN arrive as null.
 */
type QueryHandler<Q, A> = (question: Q, scope: QueryScope) => Promise<A>;

interface GatheredAnswers<A> {
  answers: A[];
  /** Slots without an answer, ascending; the answers lack their tiles. */
  unanswered: number[];
  /** The commit as of which all nodes have answered; undefined on a single node. */
  seq: number | undefined;
}

/**
 * Asks all nodes with tiles within `bounds`. Together they answer once for each tile, all as of one commit: `seq` if it is given and
 * recent enough, otherwise the last commit that this node has applied. Throws the error of any answer, and the reason of `signal`.
 */
export type ScatterQuery<Q, A> = (
  question: Q,
  bounds?: () => QueryBounds,
  options?: { seq?: number | undefined } & Cancellable,
) => Promise<GatheredAnswers<A>>;

/** A kind of query. The checks apply to messages of other nodes: an invalid question is refused, and an invalid answer counts as none. */
export interface QueryKind {
  name: string;
  question: Check;
  answer: Check;
  /** Does in turns of the event loop what would take long at once: called before each node answers, and before the bounds are asked for. */
  prepare?: (question: unknown, signal?: AbortSignal) => Promise<void>;
  /** Milliseconds after which a node that does not answer is considered dead if other owners can be asked. */
  timeoutMs?: number;
}

/** Queries about tiles for the nodes that hold them: a single node asks itself, a cluster node asks the owners of the slots. */
export interface OwnerQueries {
  /** Increases with every change of the data: answers at the same number are still valid. */
  readonly changes: number;
  /** True if answers may come from other nodes, as messages. */
  readonly asksOtherNodes: boolean;
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
    asksOtherNodes: false,
    register:
      ({ prepare }, answer) =>
      async (question, _bounds, { signal } = {}) => {
        await prepare?.(question, signal);
        return {
          answers: [await answer(question, { ...WHOLE_INDEX, signal })],
          unanswered: [],
          seq: undefined,
        };
      },
  };
}
