/** Questions to the owners of slots in a cluster: scattered, answered as of one commit, and asked again where nodes fail. */
import {
  ERROR_DOCUMENT_SCHEMA,
  type ErrorDocument,
  fromErrorDocument,
  TilewrightError,
  toErrorDocument,
} from '../../errors.js';
import { type Check, COUNT, messageCheck } from '../../json-schema.js';
import { type ColumnIndex, commitTooOld, type Storage } from '../../storage/index.js';
import type { Cluster } from '../cluster.js';
import {
  badQuery,
  commitNotInLog,
  peerUnknown,
  replicaBehind,
  slotNotHeld,
  unknownQuery,
} from '../errors.js';
import { slotTest } from '../placement/slot-lookup.js';
import { ALL_SLOTS, candidateSlots } from '../placement/slot-pruning.js';
import { SlotSet } from '../placement/slot-set.js';
import type { PeerClient } from '../rpc/peer-client.js';
import type {
  GatheredAnswers,
  OwnerQueries,
  QueryBounds,
  QueryHandler,
  QueryKind,
  QueryScope,
  ScatterQuery,
} from './owner-queries.js';
import { routeQuery } from './query-router.js';

/** What an owner is asked. */
export interface OwnerRequest {
  kind: string;
  question: unknown;
  /** The slots whose tiles are meant, as text of a `SlotSet`. */
  slots: string;
  /** The commit as of which it is to answer. */
  seq: number;
  /** How long it may wait for that commit, ms. */
  wait: number;
}

/** What it answers. An error of the question itself is an answer too: others would not answer it better. */
export interface OwnerReply {
  answer?: unknown;
  error?: ErrorDocument;
  /** It cannot answer as of that commit, but as of this one and later ones. */
  oldest?: number;
}

/** Where owners are asked. */
export const OWNER_QUERY_PATH = '/cluster/internal/ask';

/** How long an owner is waited for while others could answer, and where none can; and of that for the commit, ms. */
const OWNER_TIMEOUT_MS = 500;
const CATCH_UP_MS = 500;
const LAST_OWNER_TIMEOUT_MS = 10_000;
const LAST_CATCH_UP_MS = 5000;
/** As of so many commits a question is asked at most: where owners have got slots after the first one, it is too old for them. */
const MAX_COMMITS_TRIED = 3;

interface PartialResult {
  answers: unknown[];
  unanswered: number[];
  /** What went wrong in nodes that were reached; the others may be able to answer. */
  errors: TilewrightError[];
  /** The commit as of which nodes could answer that could not as of the one that was asked for; 0 where there are none. */
  oldest: number;
}

const checkReply = messageCheck({
  type: 'object',
  anyOf: [{ required: ['answer'] }, { required: ['error'] }, { required: ['oldest'] }],
  properties: { error: ERROR_DOCUMENT_SCHEMA, oldest: COUNT },
});

interface RegisteredKind {
  answer: QueryHandler<unknown, unknown>;
  checkQuestion: Check;
  /** Checks an `OwnerReply`. */
  checkReply: Check;
}

export class ScatterGather implements OwnerQueries {
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
    { name, question: checkQuestion, answer: checkAnswer, timeoutMs = OWNER_TIMEOUT_MS }: QueryKind,
    answer: QueryHandler<Q, A>,
  ): ScatterQuery<Q, A> {
    this.kinds.set(name, {
      answer: answer as QueryHandler<unknown, unknown>,
      checkQuestion,
      checkReply: (reply) => {
        const fault = checkReply(reply);
        if (fault !== undefined) return fault;
        const { answer } = reply as OwnerReply;
        return answer === undefined ? undefined : checkAnswer(answer);
      },
    });
    return (question, bounds, seq) => this.query<A>({ kind: name, question }, bounds, timeoutMs, seq);
  }

  /**
   * Answers a question of another node. Throws TW_DHT_QUESTION, TW_DHT_BAD_QUESTION, TW_DHT_BAD_SLOTS, TW_DHT_BEHIND, TW_DHT_NOT_HELD, and
   * the reason of `signal` if that aborts while the question waits for its commit.
   */
  async handle(request: OwnerRequest, signal?: AbortSignal): Promise<OwnerReply> {
    const { kind, question } = request;
    const fault = this.registeredKind(kind).checkQuestion(question);
    if (fault !== undefined) throw badQuery(kind, fault);
    return this.answer(request, signal);
  }

  /** Throws TW_DHT_QUESTION. */
  private registeredKind(kind: string): RegisteredKind {
    const known = this.kinds.get(kind);
    if (!known) throw unknownQuery(kind);
    return known;
  }

  private async answer(
    { kind, question, slots, seq, wait }: OwnerRequest,
    signal?: AbortSignal,
  ): Promise<OwnerReply> {
    const { replica, prefixLengths } = this.cluster;
    const { answer } = this.registeredKind(kind);
    const wanted = SlotSet.fromText(slots);
    await replica.waitForCommit(seq, Math.min(wait, LAST_CATCH_UP_MS), signal);
    for (const slot of wanted) if (!replica.hasSlot(slot)) throw slotNotHeld(slot);
    const { index }: { index: ColumnIndex } = this.storage;
    const isAll = wanted.size === replica.slotCount;
    const only = isAll ? undefined : slotTest(wanted, prefixLengths);
    const share: QueryScope = { only, key: slots, seq };
    try {
      return { answer: await index.asOf(seq, () => answer(question, share)) };
    } catch (error) {
      if (commitTooOld.is(error)) return { oldest: index.oldest };
      if (!(error instanceof TilewrightError)) throw error;
      return { error: toErrorDocument(error) };
    }
  }

  /** All answers are as of one commit: `first`, or a later one where owners know too little of it. */
  private async query<A>(
    question: Pick<OwnerRequest, 'kind' | 'question'>,
    bounds: (() => QueryBounds) | undefined,
    patience: number,
    first = this.cluster.replica.applied,
  ): Promise<GatheredAnswers<A>> {
    const { replica, prefixLengths } = this.cluster;
    const slots = [...(bounds ? candidateSlots(bounds(), prefixLengths) : ALL_SLOTS)];
    let seq = first;
    for (let tries = 1; ; tries++) {
      const { answers, unanswered, errors, oldest } = await this.queryAsOf(seq, question, slots, patience);
      const mayAskAnew = unanswered.length > 0 && oldest > 0 && tries < MAX_COMMITS_TRIED;
      if (!mayAskAnew || !(await this.hasApplied(oldest))) {
        if (unanswered.length > 0 && errors.length > 0) throw errors[0];
        return { answers: answers as A[], unanswered: unanswered.sort((a, b) => a - b), seq };
      }
      seq = replica.applied;
    }
  }

  /**
   * Waits up to `LAST_CATCH_UP_MS` for a commit that another node named; false if this node does not apply it in time. A node never answers
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
    question: Pick<OwnerRequest, 'kind' | 'question'>,
    slots: number[],
    patience: number,
  ): Promise<PartialResult> {
    const soon = await this.queryOwners({ ...question, seq, wait: CATCH_UP_MS }, slots, patience);
    if (soon.unanswered.length === 0 || soon.oldest > 0) return soon;
    // No owner has answered soon: wait longer, and for any of them.
    const request = { ...question, seq, wait: LAST_CATCH_UP_MS };
    const late = await this.queryOwners(request, soon.unanswered, Math.max(patience, LAST_OWNER_TIMEOUT_MS));
    return { ...late, answers: [...soon.answers, ...late.answers] };
  }

  /** Answers for slots, and the slots that nobody has answered for. */
  private async queryOwners(
    question: Omit<OwnerRequest, 'slots'>,
    slots: Iterable<number>,
    patience: number,
  ): Promise<PartialResult> {
    const asked: PartialResult = { answers: [], unanswered: [], errors: [], oldest: 0 };
    const avoided = new Set<string>();
    for (let open = [...slots]; open.length > 0; ) {
      const route = routeQuery(this.cluster.placement, open, this.cluster.self, avoided);
      asked.unanswered.push(...route.unanswered);
      open = [];
      await Promise.all(
        route.byNode.map(async ({ node, slots }) => {
          const request = { ...question, slots: new SlotSet(slots).toText() };
          const reply = await this.queryOne(node, request, patience).catch(
            (error): OwnerReply | undefined => {
              // Errors without a code are bugs and are rethrown.
              if (!(error instanceof TilewrightError)) throw error;
              // An owner of an earlier version does not know the question. It is not away, so if nobody else answers, the search fails.
              return badQuery.is(error.cause) ? { error: toErrorDocument(error) } : undefined;
            },
          );
          if (reply && !reply.error && reply.oldest === undefined) {
            asked.answers.push(reply.answer);
            return;
          }
          if (reply?.error) {
            const fault = fromErrorDocument(reply.error);
            if (fault.status < 500) throw fault;
            asked.errors.push(fault);
          }
          asked.oldest = Math.max(asked.oldest, reply?.oldest ?? 0);
          avoided.add(node);
          open.push(...slots);
        }),
      );
    }
    return asked;
  }

  private queryOne(node: string, request: OwnerRequest, patience: number): Promise<OwnerReply> {
    if (node === this.cluster.self) return this.answer(request);
    const peer = this.cluster.peer(node);
    if (!peer) return Promise.reject(peerUnknown(node));
    return this.peers.call(
      peer,
      OWNER_QUERY_PATH,
      request,
      patience,
      this.registeredKind(request.kind).checkReply,
    );
  }
}
