/** The sizes of the slots of a cluster, as its nodes report them. */
import { COUNT, listOf, messageCheck, objectOf, TEXT, tupleOf } from '../../utils/json-schema.js';
import { SLOTS, SlotSet } from '../placement/index.js';
import type { PeerClient } from '../rpc/index.js';
import type { Member } from './membership.js';

export const STATS_PATH = '/cluster/internal/survey';

/** The report of one node. */
export interface NodeStats {
  /** The last commit that the node has applied. */
  applied: number;
  /** The slots that it holds, as text of a `SlotSet`. */
  slots: string;
  /** The sizes of its slots that contain tiles. */
  bytes: [slot: number, bytes: number][];
}

const SLOT = { type: 'integer', minimum: 0, maximum: SLOTS - 1 };
const checkNodeStats = messageCheck(
  objectOf({ applied: COUNT, slots: TEXT, bytes: listOf(tupleOf(SLOT, COUNT)) }),
);

/** The part of a replica that is reported. */
interface StatsSource {
  readonly applied: number;
  readonly slots: number[];
  bytesBySlot(): ArrayLike<number>;
}

/** The report of this node. */
export function nodeStats(replica: StatsSource): NodeStats {
  const bytes = replica.bytesBySlot();
  const { slots, applied } = replica;
  const measured = slots.flatMap((slot): NodeStats['bytes'] =>
    bytes[slot]! > 0 ? [[slot, bytes[slot]!]] : [],
  );
  return { applied, slots: new SlotSet(slots).toText(), bytes: measured };
}

export interface ClusterStats {
  /** The last commit that each node has applied, for all nodes that answered. */
  applied: ReadonlyMap<string, number>;
  /** Bytes by slot; 0 for slots that no node has reported so far. */
  bytes: ArrayLike<number>;
  /** Number of slots that no node has reported so far. */
  unmeasured: number;
}

/** Collects the reports of all nodes. For slots that no node reports now, the last report counts. */
export class StatsCollector {
  private readonly bytes = new Float64Array(SLOTS);
  private readonly measured = new SlotSet();

  constructor(
    private readonly self: string,
    private readonly replica: StatsSource,
    /** Without it, only this node is asked. */
    private readonly peers: PeerClient | undefined,
  ) {}

  /** Asks all `members`. A node is ignored if it does not send a valid `NodeStats` within `timeoutMs`. */
  async collect(members: readonly Member[], timeoutMs: number): Promise<ClusterStats> {
    const answers = await Promise.allSettled(members.map((member) => this.statsOf(member, timeoutMs)));
    const reports = answers.flatMap((answer, i) =>
      answer.status === 'fulfilled' ? [{ node: members[i]!.id, ...answer.value }] : [],
    );
    // If two nodes report the same slot, the one that has applied more commits counts.
    for (const { slots, bytes } of reports.toSorted((a, b) => a.applied - b.applied)) {
      for (const slot of slots) {
        this.bytes[slot] = 0;
        this.measured.add(slot);
      }
      for (const [slot, count] of bytes) this.bytes[slot] = count;
    }
    return {
      applied: new Map(reports.map(({ node, applied }) => [node, applied])),
      bytes: this.bytes.slice(),
      unmeasured: SLOTS - this.measured.size,
    };
  }

  private async statsOf(
    member: Member,
    timeoutMs: number,
  ): Promise<Omit<NodeStats, 'slots'> & { slots: SlotSet }> {
    const stats =
      member.id === this.self ? nodeStats(this.replica) : await this.requestStats(member, timeoutMs);
    return { ...stats, slots: SlotSet.fromText(stats.slots) };
  }

  private requestStats(member: Member, timeoutMs: number): Promise<NodeStats> {
    if (!this.peers) throw new Error(`without a peer client, node ${member.id} cannot be asked`);
    return this.peers.call(member, STATS_PATH, {}, timeoutMs, checkNodeStats);
  }
}
