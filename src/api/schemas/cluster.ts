/** What the routes of the cluster answer. */

const owner = {
  type: 'object',
  required: ['node', 'state'],
  properties: {
    node: { type: 'string' },
    state: { type: 'string', enum: ['initializing', 'available', 'leaving'] },
  },
};

const count = { type: 'integer', minimum: 0 };
const amount = {
  type: 'object',
  required: ['slots', 'bytes'],
  properties: { slots: count, bytes: count },
};

const node = {
  type: 'object',
  required: ['id', 'slots', 'running', 'draining'],
  properties: {
    id: { type: 'string' },
    url: { type: 'string' },
    zone: { type: 'string' },
    weight: { type: 'number' },
    software: { type: 'string' },
    slots: { type: 'integer' },
    /** Slots by state of the node as their owner. */
    states: {
      type: 'object',
      required: ['initializing', 'available', 'leaving'],
      properties: { initializing: count, available: count, leaving: count },
    },
    /** Of the tiles in its slots, as far as nodes tell. */
    bytes: count,
    /** The part of all bytes that it should hold. */
    share: { type: 'number', minimum: 0, maximum: 1 },
    /** Commits that others have applied and it has not; absent where it does not answer. */
    lag: count,
    running: { type: 'boolean' },
    draining: { type: 'boolean' },
  },
};

const usage = {
  type: 'object',
  required: ['id', 'startedAt', 'cpuSeconds', 'memoryBytes', 'includesChildren'],
  properties: {
    id: { type: 'string' },
    cpuSeconds: {
      type: 'number',
      minimum: 0,
      description: 'CPU time of the server and of all processes that it has started',
    },
    memoryBytes: {
      ...count,
      description: 'Resident memory of these processes, without mapped files',
    },
    startedAt: {
      type: 'string',
      format: 'date-time',
      description: 'Start of the server process, when the counters were 0',
    },
    includesChildren: {
      type: 'boolean',
      description: 'False on systems other than Linux: the figures include only the server process',
    },
    network: {
      type: 'object',
      description: 'Absent if the system does not count what it sends: Linux alone does',
      required: ['namespace', 'sentBytes', 'loopbackBytes'],
      properties: {
        namespace: { type: 'string', description: 'The same for nodes that share the interfaces' },
        sentBytes: {
          ...count,
          description: 'Sent by all interfaces except the loopback, including the bytes of other programs',
        },
        loopbackBytes: count,
      },
    },
  },
};

export const clusterSchemas = {
  Nodes: {
    type: 'object',
    required: ['nodes'],
    properties: {
      nodes: { type: 'array', items: node },
      asOf: {
        type: 'string',
        format: 'date-time',
        description: 'There where etcd does not answer: who runs and who owns what is as of then',
      },
    },
  },
  Usage: {
    type: 'object',
    required: ['nodes', 'unanswered'],
    properties: {
      nodes: { type: 'array', items: usage },
      unanswered: {
        type: 'array',
        items: { type: 'string' },
        description: 'Nodes that run and have not answered',
      },
    },
  },
  Placement: {
    type: 'object',
    required: ['nodes', 'owners'],
    properties: {
      version: { type: 'integer' },
      owners: { type: 'integer' },
      nodes: {
        type: 'array',
        items: { type: 'object', required: ['id'], properties: { id: { type: 'string' } } },
      },
      slots: { type: 'array', items: { type: 'array', items: owner } },
    },
  },
  Location: {
    type: 'object',
    required: ['grid', 'geocode', 'owners'],
    properties: {
      grid: { type: 'string' },
      geocode: { type: 'string' },
      slot: { type: 'integer' },
      owners: { type: 'array', items: owner },
    },
  },
  Rebalanced: {
    type: 'object',
    required: ['dryRun', 'nodes', 'moved', 'least', 'deviation'],
    properties: {
      dryRun: { type: 'boolean' },
      nodes: {
        type: 'array',
        items: {
          type: 'object',
          required: ['id', 'share', 'before', 'after', 'takes', 'gives'],
          properties: {
            id: { type: 'string' },
            share: { type: 'number', minimum: 0, maximum: 1 },
            before: amount,
            after: amount,
            takes: amount,
            gives: amount,
          },
        },
      },
      moved: amount,
      least: { ...count, description: 'Bytes that have to move so that nodes hold what they hold after it' },
      deviation: {
        type: 'object',
        required: ['before', 'after'],
        properties: { before: { type: 'number' }, after: { type: 'number' } },
      },
    },
  },
  Drained: {
    type: 'object',
    required: ['id', 'draining'],
    properties: { id: { type: 'string' }, draining: { type: 'boolean' } },
  },
};
