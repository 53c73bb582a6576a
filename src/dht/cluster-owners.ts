/** Questions to the owners of slots in a cluster: scattered, answered as of one commit, and asked again where nodes fail. */
import { TilewrightError } from '../errors.js';
import type { ColumnIndex, Storage } from '../storage/index.js';
import type { Cluster } from './cluster.js';
import { coveredSlots, everySlot } from './covered-slots.js';
import { notHeld, peerUnknown, unknownQuestion } from './errors.js';
import type { Answering, Answers, Asking, Bounds, Owners, Share } from './owners.js';
import type { Peers } from './peers.js';
import { routeTo } from './routing.js';
import { SlotSet } from './slot-set.js';
import { rowTest } from './slot-test.js';

/** What an owner is asked. */
export interface OwnerRequest {
  kind: string;
  question: unknown;
  /** The slots whose tiles are meant, as text of a `SlotSet`. */
  slots: string;
  /** The last commit that must be applied. */
  since: number;
}

/** What it answers. An error of the question itself is an answer too: others would not answer it better. */
export interface OwnerReply {
  /** The last commit that is applied. */
  applied: number;
  answer?: unknown;
  error?: { code: string; status: number; message: string };
}

/** Where owners are asked. */
export const OWNERS_PATH = '/cluster/internal/ask';

/** How long an owner that is behind waits for the commit that is asked for, ms. */
const CATCH_UP = 500;
/** How long an owner is waited for while others could answer, and where none can, ms. */
const PATIENCE = 500;
const LAST_PATIENCE = 10_000;
/** Rounds in which owners are brought to the same commit. */
const ROUNDS = 5;

/** What one owner has answered for some slots. */
interface Part {
  slots: number[];
  reply: OwnerReply;
}

interface Asked {
  parts: Part[];
  unanswered: number[];
  /** What went wrong in nodes that were reached; the others may be able to answer. */
  faults: TilewrightError[];
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
    return (question, bounds) => this.ask<A>({ kind, question }, bounds, patience);
  }

  /** What this node answers as an owner. Throws TW_DHT_BEHIND, TW_DHT_NOT_HELD, TW_DHT_QUESTION. */
  async reply({ kind, question, slots, since }: OwnerRequest): Promise<OwnerReply> {
    const { replica, prefixLengths } = this.cluster;
    const answer = this.kinds.get(kind);
    if (!answer) throw unknownQuestion(kind);
    await replica.waitFor(since, CATCH_UP);
    const wanted = SlotSet.fromText(slots);
    for (const slot of wanted) if (!replica.holds(slot)) throw notHeld(slot);
    const { index }: { index: ColumnIndex } = this.storage;
    const isAll = wanted.size === replica.size;
    const only = isAll ? undefined : rowTest(index, (slot) => wanted.has(slot), prefixLengths);
    const share: Share = { only, key: slots };
    const { applied } = replica;
    try {
      return { applied, answer: await answer(question, share) };
    } catch (error) {
      if (!(error instanceof TilewrightError)) throw error;
      const { code, status, message } = error;
      return { applied, error: { code, status, message } };
    }
  }

  /** All answers are of one commit as far as that can be had: who is behind is asked again. */
  private async ask<A>(
    question: Pick<OwnerRequest, 'kind' | 'question'>,
    bounds: (() => Bounds) | undefined,
    patience: number,
  ): Promise<Answers<A>> {
    const { cluster } = this;
    let kept: Part[] = [];
    let open: Iterable<number> = bounds ? coveredSlots(bounds(), cluster.prefixLengths) : everySlot;
    let since = cluster.replica.applied;
    for (let round = 0; ; round++) {
      const first = await this.askOwners(question, open, since, patience);
      // Nobody has answered soon: whoever answers at all.
      const second = await this.askOwners(
        question,
        first.unanswered,
        since,
        Math.max(patience, LAST_PATIENCE),
      );
      if (second.unanswered.length > 0 && second.faults.length > 0) throw second.faults[0];
      kept.push(...first.parts, ...second.parts);
      since = Math.max(since, ...kept.map(({ reply }) => reply.applied));
      const behind = kept.filter(({ reply }) => reply.applied < since);
      if (behind.length === 0 || round === ROUNDS) {
        const answers = kept.map(({ reply }) => reply.answer as A);
        return { answers, unanswered: second.unanswered.sort((a, b) => a - b) };
      }
      kept = kept.filter(({ reply }) => reply.applied === since);
      open = [...behind.flatMap(({ slots }) => slots), ...second.unanswered];
    }
  }

  /** Answers for slots, each of one commit from `since` on, and the slots that nobody has answered for. */
  private async askOwners(
    question: Pick<OwnerRequest, 'kind' | 'question'>,
    slots: Iterable<number>,
    since: number,
    patience: number,
  ): Promise<Asked> {
    const asked: Asked = { parts: [], unanswered: [], faults: [] };
    const avoided = new Set<string>();
    for (let open = [...slots]; open.length > 0; ) {
      const route = routeTo(this.cluster.placement, open, this.cluster.self, avoided);
      asked.unanswered.push(...route.unanswered);
      open = [];
      await Promise.all(
        route.shares.map(async ({ node, slots }) => {
          const request = { ...question, slots: new SlotSet(slots).toText(), since };
          const reply = await this.askOne(node, request, patience).catch((error) => {
            // What is no error of ours would be a fault of this program.
            if (error instanceof TilewrightError) return undefined;
            throw error;
          });
          if (reply && !reply.error) {
            asked.parts.push({ slots, reply });
            return;
          }
          if (reply?.error) {
            const { code, status, message } = reply.error;
            const fault = new TilewrightError(code, status, message);
            if (status < 500) throw fault;
            asked.faults.push(fault);
          }
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
