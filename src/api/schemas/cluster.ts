/** Documents of the routes of the cluster. */

import { listOf } from '../../utils/json-schema.js';
import { boolean, count, number, object, oneOf, text, time } from './builders.js';

const owner = object({ node: text, state: oneOf('initializing', 'available', 'leaving') });
const amount = object({ slots: count, bytes: count });
const share = { type: 'number', minimum: 0, maximum: 1 };

const node = object({
  id: text,
  'url?': text,
  'zone?': text,
  'weight?': number,
  'software?': text,
  slots: count,
  /** Slots by state of the node as their owner. */
  'states?': object({ initializing: count, available: count, leaving: count }),
  /** Bytes of the tiles in its slots, as far as nodes report them. */
  'bytes?': count,
  /** Target fraction of all bytes. */
  'share?': share,
  /** Commits that other nodes have applied and this node has not; absent if the node does not answer. */
  'lag?': count,
  /** Seconds by which its clock is ahead of the clock of the answering node; absent if the two have not exchanged messages. */
  'clockOffset?': number,
  running: boolean,
  draining: boolean,
});

const usage = object({
  id: text,
  cpuSeconds: {
    type: 'number',
    minimum: 0,
    description: 'CPU time of the server and of all processes that it has started',
  },
  memoryBytes: { ...count, description: 'Resident memory of these processes, without mapped files' },
  startedAt: { ...time, description: 'Start of the server process, when the counters were 0' },
  includesChildren: {
    ...boolean,
    description: 'False on systems other than Linux: the figures include only the server process',
  },
  'network?': {
    ...object({
      namespace: { ...text, description: 'The same for nodes that share the interfaces' },
      sentBytes: {
        ...count,
        description: 'Sent by all interfaces except the loopback, including the bytes of other programs',
      },
      loopbackBytes: count,
    }),
    description: 'Absent on systems other than Linux, which do not count sent bytes',
  },
});

export const clusterSchemas = {
  Nodes: object({
    nodes: listOf(node),
    'asOf?': {
      ...time,
      description: 'Present if etcd does not answer: the time of the listed members and owners',
    },
  }),
  Usage: object({
    nodes: listOf(usage),
    unanswered: { ...listOf(text), description: 'Nodes that run and did not answer' },
  }),
  Placement: object({
    'version?': count,
    owners: count,
    nodes: listOf(object({ id: text })),
    'slots?': listOf(listOf(owner)),
  }),
  Location: object({ grid: text, geocode: text, 'slot?': count, owners: listOf(owner) }),
  Rebalanced: object({
    dryRun: boolean,
    nodes: listOf(object({ id: text, share, before: amount, after: amount, takes: amount, gives: amount })),
    moved: amount,
    least: { ...count, description: 'The minimum of bytes that have to move for the same result' },
    deviation: object({ before: number, after: number }),
  }),
  Drained: object({ id: text, draining: boolean }),
};
