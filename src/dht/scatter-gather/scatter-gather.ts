/** Questions to the owners of slots in a cluster: scattered, answered as of one commit, and asked again where nodes fail. */
import { receivedError, SENT_ERROR, type SentError, sentError, TilewrightError } from '../../errors.js';
import { type Check, COUNT, messageCheck } from '../../json-schema.js';
import { type ColumnIndex, type Storage, tooOld } from '../../storage/index.js';
import type { Cluster } from '../cluster.js';
import {
  badQuestion,
  commitMissing,
  notHeld,
  peerUnknown,
  replicaBehind,
  unknownQuestion,
} from '../errors.js';
import { inSlots } from '../placement/slot-lookup.js';
import { coveredSlots, everySlot } from '../placement/slot-pruning.js';
import { SlotSet } from '../placement/slot-set.js';
import type { Peers } from '../rpc/peer-client.js';
import type { Answering, Answers, Asking, Bounds, Owners, QuestionKind, Share } from './owner-queries.js';
import { routeTo } from './query-router.js';

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
  error?: SentError;
  /** It cannot answer as of that commit, but as of this one and later ones. */
  oldest?: number;
}

/** Where owners are asked. */
export const OWNERS_PATH = '/cluster/internal/ask';

/** How long an owner is waited for while others could answer, and where none can; and of that for the commit, ms. */
const PATIENCE = 500;
const CATCH_UP = 500;
const LAST_PATIENCE = 10_000;
const LAST_CATCH_UP = 5000;
/** As of so many commits a question is asked at most: where owners have got slots after the first one, it is too old for them. */
const MOST_TRIES = 3;

interface Asked {
  answers: unknown[];
  unanswered: number[];
  /** What went wrong in nodes that were reached; the others may be able to answer. */
  faults: TilewrightError[];
  /** The commit as of which nodes could answer that could not as of the one that was asked for; 0 where there are none. */
  oldest: number;
}

const checkReply = messageCheck({
  type: 'object',
  anyOf: [{ required: ['answer'] }, { required: ['error'] }, { required: ['oldest'] }],
  properties: { error: SENT_ERROR, oldest: COUNT },
});

interface DefinedKind {
  answer: Answering<unknown, unknown>;
  checkQuestion: Check;
  /** Checks an `OwnerReply`. */
  checkReply: Check;
}

export class ClusterOwners implements Owners {
  private readonly kinds = new Map<string, DefinedKind>();

  constructor(
    private readonly storage: Storage,
    private readonly cluster: Cluster,
    private readonly peers: Peers,
  ) {}

  get changes(): number {
    return this.cluster.replica.applied;
  }

  define<Q, A>(
    { name, question: checkQuestion, answer: checkAnswer, patience = PATIENCE }: QuestionKind,
    answer: Answering<Q, A>,
  ): Asking<Q, A> {
    this.kinds.set(name, {
      answer: answer as Answering<unknown, unknown>,
      checkQuestion,
      checkReply: (reply) => {
        const fault = checkReply(reply);
        if (fault !== undefined) return fault;
        const { answer } = reply as OwnerReply;
        return answer === undefined ? undefined : checkAnswer(answer);
      },
    });
    return (question, bounds, seq) => this.ask<A>({ kind: name, question }, bounds, patience, seq);
  }

  /**
   * Answers a question of another node. Throws TW_DHT_QUESTION, TW_DHT_BAD_QUESTION, TW_DHT_BAD_SLOTS, TW_DHT_BEHIND, TW_DHT_NOT_HELD, and
   * the reason of `signal` if that aborts while the question waits for its commit.
   */
  async reply(request: OwnerRequest, signal?: AbortSignal): Promise<OwnerReply> {
    const { kind, question } = request;
    const fault = this.kindNamed(kind).checkQuestion(question);
    if (fault !== undefined) throw badQuestion(kind, fault);
    return this.answer(request, signal);
  }

  /** Throws TW_DHT_QUESTION. */
  private kindNamed(kind: string): DefinedKind {
    const known = this.kinds.get(kind);
    if (!known) throw unknownQuestion(kind);
    return known;
  }

  private async answer(
    { kind, question, slots, seq, wait }: OwnerRequest,
    signal?: AbortSignal,
  ): Promise<OwnerReply> {
    const { replica, prefixLengths } = this.cluster;
    const { answer } = this.kindNamed(kind);
    const wanted = SlotSet.fromText(slots);
    await replica.waitFor(seq, Math.min(wait, LAST_CATCH_UP), signal);
    for (const slot of wanted) if (!replica.holds(slot)) throw notHeld(slot);
    const { index }: { index: ColumnIndex } = this.storage;
    const isAll = wanted.size === replica.size;
    const only = isAll ? undefined : inSlots(wanted, prefixLengths);
    const share: Share = { only, key: slots, seq };
    try {
      return { answer: await index.asOf(seq, () => answer(question, share)) };
    } catch (error) {
      if (tooOld.is(error)) return { oldest: index.oldest };
      if (!(error instanceof TilewrightError)) throw error;
      return { error: sentError(error) };
    }
  }

  /** All answers are as of one commit: `first`, or a later one where owners know too little of it. */
  private async ask<A>(
    question: Pick<OwnerRequest, 'kind' | 'question'>,
    bounds: (() => Bounds) | undefined,
    patience: number,
    first = this.cluster.replica.applied,
  ): Promise<Answers<A>> {
    const { replica, prefixLengths } = this.cluster;
    const slots = [...(bounds ? coveredSlots(bounds(), prefixLengths) : everySlot)];
    let seq = first;
    for (let tries = 1; ; tries++) {
      const { answers, unanswered, faults, oldest } = await this.askAsOf(seq, question, slots, patience);
      const mayAskAnew = unanswered.length > 0 && oldest > 0 && tries < MOST_TRIES;
      if (!mayAskAnew || !(await this.hasApplied(oldest))) {
        if (unanswered.length > 0 && faults.length > 0) throw faults[0];
        return { answers: answers as A[], unanswered: unanswered.sort((a, b) => a - b), seq };
      }
      seq = replica.applied;
    }
  }

  /**
   * Waits up to `LAST_CATCH_UP` for a commit that another node named; false if this node does not apply it in time. A node never answers
   * as of a commit that it has not applied, because its next answer could then be as of an earlier one.
   */
  private hasApplied(seq: number): Promise<boolean> {
    return this.cluster.replica.waitForNamed(seq, LAST_CATCH_UP).then(
      () => true,
      (error) => {
        if (replicaBehind.is(error) || commitMissing.is(error)) return false;
        throw error;
      },
    );
  }

  private async askAsOf(
    seq: number,
    question: Pick<OwnerRequest, 'kind' | 'question'>,
    slots: number[],
    patience: number,
  ): Promise<Asked> {
    const soon = await this.askOwners({ ...question, seq, wait: CATCH_UP }, slots, patience);
    if (soon.unanswered.length === 0 || soon.oldest > 0) return soon;
    // No owner has answered soon: wait longer, and for any of them.
    const request = { ...question, seq, wait: LAST_CATCH_UP };
    const late = await this.askOwners(request, soon.unanswered, Math.max(patience, LAST_PATIENCE));
    return { ...late, answers: [...soon.answers, ...late.answers] };
  }

  /** Answers for slots, and the slots that nobody has answered for. */
  private async askOwners(
    question: Omit<OwnerRequest, 'slots'>,
    slots: Iterable<number>,
    patience: number,
  ): Promise<Asked> {
    const asked: Asked = { answers: [], unanswered: [], faults: [], oldest: 0 };
    const avoided = new Set<string>();
    for (let open = [...slots]; open.length > 0; ) {
      const route = routeTo(this.cluster.placement, open, this.cluster.self, avoided);
      asked.unanswered.push(...route.unanswered);
      open = [];
      await Promise.all(
        route.shares.map(async ({ node, slots }) => {
          const request = { ...question, slots: new SlotSet(slots).toText() };
          const reply = await this.askOne(node, request, patience).catch((error): OwnerReply | undefined => {
            // Errors without a code are bugs and are rethrown.
            if (!(error instanceof TilewrightError)) throw error;
            // An owner of an earlier version does not know the question. It is not away, so if nobody else answers, the search fails.
            return badQuestion.is(error.cause) ? { error: sentError(error) } : undefined;
          });
          if (reply && !reply.error && reply.oldest === undefined) {
            asked.answers.push(reply.answer);
            return;
          }
          if (reply?.error) {
            const fault = receivedError(reply.error);
            if (fault.status < 500) throw fault;
            asked.faults.push(fault);
          }
          asked.oldest = Math.max(asked.oldest, reply?.oldest ?? 0);
          avoided.add(node);
          open.push(...slots);
        }),
      );
    }
    return asked;
  }

  private askOne(node: string, request: OwnerRequest, patience: number): Promise<OwnerReply> {
    if (node === this.cluster.self) return this.answer(request);
    const peer = this.cluster.peer(node);
    if (!peer) return Promise.reject(peerUnknown(node));
    return this.peers.ask(peer, OWNERS_PATH, request, patience, this.kindNamed(request.kind).checkReply);
  }
}
