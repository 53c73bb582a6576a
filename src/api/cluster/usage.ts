/** What the nodes of a cluster use, as each of them measures it. */
import { messageCheck, NUMBER, objectOf, TEXT } from '../../json-schema.js';
import { type ProcessUsage, processUsage } from '../operations/process-usage.js';
import type { Services } from '../services.js';

/** Where nodes are asked. */
export const USAGE_PATH = '/cluster/internal/usage';

/** Who does not answer within so many ms is left out. */
const PATIENCE = 1000;

const NETWORK = objectOf({ namespace: TEXT, sentBytes: NUMBER, loopbackBytes: NUMBER });
const checkUsage = messageCheck(objectOf({ cpuSeconds: NUMBER, memoryBytes: NUMBER }, { network: NETWORK }));

export interface ClusterUsage {
  nodes: ({ id: string } & ProcessUsage)[];
  /** Ids of nodes that run and have not answered. */
  unanswered: string[];
}

export async function usageOf({ cluster: service, nodeId }: Services): Promise<ClusterUsage> {
  if (!service) return { nodes: [{ id: nodeId, ...processUsage() }], unanswered: [] };
  const { cluster, peers } = service;
  const members = [...cluster.nodes].sort((a, b) => (a.id < b.id ? -1 : 1));
  const answers = await Promise.allSettled(
    members.map(async (member) =>
      member.id === cluster.self
        ? processUsage()
        : peers.ask<ProcessUsage>(member, USAGE_PATH, {}, PATIENCE, checkUsage),
    ),
  );
  return {
    nodes: answers.flatMap((answer, i) =>
      answer.status === 'fulfilled' ? [{ id: members[i]!.id, ...answer.value }] : [],
    ),
    unanswered: answers.flatMap(({ status }, i) => (status === 'rejected' ? [members[i]!.id] : [])),
  };
}
