/** What the routes of the cluster answer. */

const owner = {
  type: 'object',
  required: ['node', 'state'],
  properties: {
    node: { type: 'string' },
    state: { type: 'string', enum: ['initializing', 'available', 'leaving'] },
  },
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
    running: { type: 'boolean' },
    draining: { type: 'boolean' },
  },
};

export const clusterSchemas = {
  Nodes: {
    type: 'object',
    required: ['nodes'],
    properties: { nodes: { type: 'array', items: node } },
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
  Drained: {
    type: 'object',
    required: ['id', 'draining'],
    properties: { id: { type: 'string' }, draining: { type: 'boolean' } },
  },
};
