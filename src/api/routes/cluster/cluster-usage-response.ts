/** CPU time, memory and sent bytes of the nodes of a cluster. Each node measures its own. */

import { type ProcessUsage, processUsage } from '../../../metrics/index.js';
import { isoTime } from '../../../query/index.js';
import { messageCheck, NUMBER, objectOf, TEXT } from '../../../utils/json-schema.js';
import type { Services } from '../../api-services.js';

/** The path of the request to another node. */
export const USAGE_PATH = '/cluster/internal/usage';

/** A node that does not answer within this time is listed as unanswered. */
const USAGE_TIMEOUT_MS = 1000;
/** A measurement blocks the node for some milliseconds, so requests within this time share one. */
const MAX_AGE_MS = 250;

const NETWORK = objectOf({ namespace: TEXT, sentBytes: NUMBER, loopbackBytes: NUMBER });
const BOOLEAN = { type: 'boolean' };
const checkUsage = messageCheck(
  objectOf(
    { startedAt: TEXT, cpuSeconds: NUMBER, memoryBytes: NUMBER, includesChildren: BOOLEAN },
    { network: NETWORK },
  ),
);

interface NodeUsage extends ProcessUsage {
  /** Start of the server process, when its counters were 0. RFC 3339. */
  startedAt: string;
}

export interface ClusterUsage {
  nodes: ({ id: string } & NodeUsage)[];
  /** Ids of nodes that run and have not answered. */
  unanswered: string[];
}

const startedAt = isoTime(performance.timeOrigin);
let measured: { at: number; usage: NodeUsage } | undefined;

/** Returns the usage of this node, at most a quarter of a second old. */
export function nodeUsage(): NodeUsage {
  const now = performance.now();
  if (!measured || now - measured.at > MAX_AGE_MS)
    measured = { at: now, usage: { startedAt, ...processUsage() } };
  return measured.usage;
}

export async function clusterUsage({ cluster: service, nodeId }: Services): Promise<ClusterUsage> {
  if (!service) return { nodes: [{ id: nodeId, ...nodeUsage() }], unanswered: [] };
  const { cluster, peers } = service;
  const members = [...cluster.nodes].sort((a, b) => (a.id < b.id ? -1 : 1));
  const answers = await Promise.allSettled(
    members.map(async (member) =>
      member.id === cluster.self
        ? nodeUsage()
        : peers.call<NodeUsage>(member, USAGE_PATH, {}, USAGE_TIMEOUT_MS, checkUsage),
    ),
  );
  return {
    nodes: answers.flatMap((answer, i) =>
      answer.status === 'fulfilled' ? [{ id: members[i]!.id, ...answer.value }] : [],
    ),
    unanswered: answers.flatMap(({ status }, i) => (status === 'rejected' ? [members[i]!.id] : [])),
  };
}
