import { defineError } from '../errors.js';

export const badPlacement = defineError(
  'TW_DHT_BAD_PLACEMENT',
  500,
  'The placement document of the cluster is not what a node writes: it was changed by hand, or by another version. Restore it, or run the version that wrote it.',
  (what: string) =>
    `the placement document cannot be used: ${what}; restore it, or run the version that wrote it`,
);

export const unknownNode = defineError(
  'TW_DHT_UNKNOWN_NODE',
  404,
  'No node of this id is in the cluster. `tilewright node list` names them.',
  (node: string) => `there is no node ${node} in the cluster; "tilewright node list" names them`,
);

export const lastNode = defineError(
  'TW_DHT_LAST_NODE',
  409,
  'The last node that is not draining cannot be drained: nothing could take over its slots. Let another join first.',
  (node: string) =>
    `node ${node} is the last one that is not draining, so nothing could take over its slots; let another join first`,
);
