/** What the nodes of a cluster hold, as each of them tells: what shares of the bytes are worked out from. */
import { COUNT, listOf, messageCheck, objectOf, TEXT, tupleOf } from '../../json-schema.js';
import { SlotSet } from '../placement/slot-set.js';
import { SLOTS } from '../placement/slots.js';
import type { Replica } from '../replication/replica.js';
import type { PeerClient } from '../rpc/peer-client.js';
import type { Member } from './membership.js';

/** Where nodes are asked. */
export const STATS_PATH = '/cluster/internal/survey';

/** What one node tells. */
export interface NodeStats {
  /** The last commit that it has applied. */
  applied: number;
  /** The slots that it holds, as text of a `SlotSet`. */
  slots: string;
  /** The bytes of those of them that have tiles. */
  bytes: [slot: number, bytes: number][];
}

const SLOT = { type: 'integer', minimum: 0, maximum: SLOTS - 1 };
const checkNodeStats = messageCheck(
  objectOf({ applied: COUNT, slots: TEXT, bytes: listOf(tupleOf(SLOT, COUNT)) }),
);

/** What this node tells. */
export function nodeStats(replica: Replica): NodeStats {
  const bytes = replica.bytesBySlot();
  const { slots, applied } = replica;
  const measured = slots.flatMap((slot): NodeStats['bytes'] =>
    bytes[slot]! > 0 ? [[slot, bytes[slot]!]] : [],
  );
  return { applied, slots: new SlotSet(slots).toText(), bytes: measured };
}

export interface ClusterStats {
  /** The last commit that each node has applied that has answered. */
  applied: ReadonlyMap<string, number>;
  /** By slot; of slots that no node has told of by now, 0. */
  bytes: ArrayLike<number>;
  /** How many slots no node has told of by now. */
  unmeasured: number;
}

/** Figures that come from many nodes; what some do not tell now is known from before. */
export class StatsCollector {
  private readonly bytes = new Float64Array(SLOTS);
  private readonly measured = new SlotSet();

  constructor(
    private readonly self: string,
    private readonly replica: Replica,
    /** Without it, this node alone is asked. */
    private readonly peers: PeerClient | undefined,
  ) {}

  /** Asks all of these nodes. A node is left out if it does not answer within `patience` ms, or not as a `Holding`. */
  async collect(members: readonly Member[], timeoutMs: number): Promise<ClusterStats> {
    const answers = await Promise.allSettled(members.map((member) => this.statsOf(member, timeoutMs)));
    const told = answers.flatMap((answer, i) =>
      answer.status === 'fulfilled' ? [{ node: members[i]!.id, ...answer.value }] : [],
    );
    // Of two that hold a slot, the one that knows later commits has the last word.
    for (const { slots, bytes } of told.toSorted((a, b) => a.applied - b.applied)) {
      for (const slot of slots) {
        this.bytes[slot] = 0;
        this.measured.add(slot);
      }
      for (const [slot, count] of bytes) this.bytes[slot] = count;
    }
    return {
      applied: new Map(told.map(({ node, applied }) => [node, applied])),
      bytes: this.bytes.slice(),
      unmeasured: SLOTS - this.measured.size,
    };
  }

  private async statsOf(
    member: Member,
    timeoutMs: number,
  ): Promise<Omit<NodeStats, 'slots'> & { slots: SlotSet }> {
    const holding =
      member.id === this.self ? nodeStats(this.replica) : await this.requestStats(member, timeoutMs);
    return { ...holding, slots: SlotSet.fromText(holding.slots) };
  }

  private requestStats(member: Member, timeoutMs: number): Promise<NodeStats> {
    if (!this.peers) throw new Error(`node ${member.id} cannot be asked`);
    return this.peers.call(member, STATS_PATH, {}, timeoutMs, checkNodeStats);
  }
}
