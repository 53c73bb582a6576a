/** What the nodes of a cluster use, as each of them measures it. */
import { messageCheck, NUMBER, objectOf, TEXT } from '../../json-schema.js';
import { type ProcessUsage, processUsage } from '../operations/process-usage.js';
import type { Services } from '../services.js';

/** Where nodes are asked. */
export const USAGE_PATH = '/cluster/internal/usage';

/** A node that does not answer within this time is left out, ms. */
const ANSWER_LIMIT = 1000;
/** Measuring takes some milliseconds, in which the node does nothing else: requests within this time get one answer, ms. */
const SHARED_FOR = 250;

const NETWORK = objectOf({ namespace: TEXT, sentBytes: NUMBER, loopbackBytes: NUMBER });
const BOOLEAN = { type: 'boolean' };
const checkUsage = messageCheck(
  objectOf(
    { startedAt: TEXT, cpuSeconds: NUMBER, memoryBytes: NUMBER, includesChildren: BOOLEAN },
    { network: NETWORK },
  ),
);

export interface NodeUsage extends ProcessUsage {
  /** RFC 3339. The counters of a process begin with it. */
  startedAt: string;
}

export interface ClusterUsage {
  nodes: ({ id: string } & NodeUsage)[];
  /** Ids of nodes that run and have not answered. */
  unanswered: string[];
}

const startedAt = new Date(performance.timeOrigin).toISOString();
let measured: { at: number; usage: NodeUsage } | undefined;

/** What this node uses, as it was measured at most a quarter of a second ago. */
export function ownUsage(): NodeUsage {
  const now = performance.now();
  if (!measured || now - measured.at > SHARED_FOR)
    measured = { at: now, usage: { startedAt, ...processUsage() } };
  return measured.usage;
}

export async function usageOf({ cluster: service, nodeId }: Services): Promise<ClusterUsage> {
  if (!service) return { nodes: [{ id: nodeId, ...ownUsage() }], unanswered: [] };
  const { cluster, peers } = service;
  const members = [...cluster.nodes].sort((a, b) => (a.id < b.id ? -1 : 1));
  const answers = await Promise.allSettled(
    members.map(async (member) =>
      member.id === cluster.self
        ? ownUsage()
        : peers.ask<NodeUsage>(member, USAGE_PATH, {}, ANSWER_LIMIT, checkUsage),
    ),
  );
  return {
    nodes: answers.flatMap((answer, i) =>
      answer.status === 'fulfilled' ? [{ id: members[i]!.id, ...answer.value }] : [],
    ),
    unanswered: answers.flatMap(({ status }, i) => (status === 'rejected' ? [members[i]!.id] : [])),
  };
}
