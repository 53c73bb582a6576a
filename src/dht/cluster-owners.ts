/** Questions to the owners of slots in a cluster: scattered, answered as of one commit, and asked again where nodes fail. */
import { receivedError, type SentError, sentError, TilewrightError } from '../errors.js';
import { type ColumnIndex, type Storage, tooOld } from '../storage/index.js';
import type { Cluster } from './cluster.js';
import { coveredSlots, everySlot } from './covered-slots.js';
import { notHeld, peerUnknown, replicaBehind, unknownQuestion } from './errors.js';
import type { Answering, Answers, Asking, Bounds, Owners, Share } from './owners.js';
import type { Peers } from './peers.js';
import { routeTo } from './routing.js';
import { SlotSet } from './slot-set.js';
import { inSlots } from './slots-of-cells.js';

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

export class ClusterOwners implements Owners {
  private readonly kinds = new Map<string, Answering<unknown, unknown>>();

  constructor(
    private readonly storage: Storage,
    private readonly cluster: Cluster,
    private readonly peers: Peers,
  ) {}

  get changes(): number {
    return this.cluster.replica.applied;
  }

  define<Q, A>(kind: string, answer: Answering<Q, A>, patience = PATIENCE): Asking<Q, A> {
    this.kinds.set(kind, answer as Answering<unknown, unknown>);
    return (question, bounds, seq) => this.ask<A>({ kind, question }, bounds, patience, seq);
  }

  /** What this node answers as an owner. Throws TW_DHT_BEHIND, TW_DHT_NOT_HELD, TW_DHT_QUESTION. */
  async reply({ kind, question, slots, seq, wait }: OwnerRequest): Promise<OwnerReply> {
    const { replica, prefixLengths } = this.cluster;
    const answer = this.kinds.get(kind);
    if (!answer) throw unknownQuestion(kind);
    await replica.waitFor(seq, wait);
    const wanted = SlotSet.fromText(slots);
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

  /** Whether this node gets to a commit. It answers as of no later one than it has applied: the next answer would go back. */
  private hasApplied(seq: number): Promise<boolean> {
    return this.cluster.replica.waitFor(seq, LAST_CATCH_UP).then(
      () => true,
      (error) => {
        if (replicaBehind.is(error)) return false;
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
    // Nobody has answered soon: whoever answers at all.
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
          const reply = await this.askOne(node, request, patience).catch((error) => {
            // What is no error of ours would be a fault of this program.
            if (error instanceof TilewrightError) return undefined;
            throw error;
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
    if (node === this.cluster.self) return this.reply(request);
    const peer = this.cluster.peer(node);
    if (!peer) return Promise.reject(peerUnknown(node));
    return this.peers.ask<OwnerReply>(peer, OWNERS_PATH, request, patience);
  }
}
