import {
  type CoordinationStore,
  compareAndSet,
  firstKeyValue,
  parseJsonValue,
} from '../../coordination/index.js';
import { otherCluster } from '../errors.js';
import type { PrefixLengths } from '../placement/index.js';

/** The properties of a cluster that never change. */
export interface ClusterDocument {
  id: string;
  /** The format of the values in the coordination store and of the objects in the tile store. */
  format: number;
  /** Number of leading characters of a geocode that determine its slot, by grid. */
  prefixLengths: PrefixLengths;
}

const KEY = 'cluster';

/** The id of the cluster in a coordination store; undefined if it has none. */
export async function readClusterId(store: CoordinationStore): Promise<string | undefined> {
  const { gets } = await store.read([{ key: KEY }]);
  const kv = firstKeyValue(gets[0]!);
  return kv && parseJsonValue<ClusterDocument>(kv, ['id']).id;
}

/** Creates the document of a new cluster, or compares it with the existing one: TW_DHT_OTHER_CLUSTER. */
export async function verifyClusterDocument(
  store: CoordinationStore,
  wanted: ClusterDocument,
): Promise<void> {
  const existing = await createClusterIfAbsent(store, wanted);
  if (describeCluster(existing) !== describeCluster(wanted))
    throw otherCluster(describeCluster(existing), describeCluster(wanted));
}

/** The document of the existing cluster; `proposed` is stored if there is none. One of several concurrent calls wins. */
export async function createClusterIfAbsent(
  store: CoordinationStore,
  proposed: ClusterDocument,
): Promise<ClusterDocument> {
  const { current } = await compareAndSet(store, { key: KEY, value: JSON.stringify(proposed), revision: 0 });
  return parseJsonValue<ClusterDocument>(current!, ['id', 'format', 'prefixLengths']);
}

function describeCluster({ id, format, prefixLengths }: ClusterDocument): string {
  const lengths = Object.entries(prefixLengths).sort(([a], [b]) => (a < b ? -1 : 1));
  return `${id} (format ${format}, prefixes ${lengths.map(([grid, length]) => `${grid} ${length}`).join(', ')})`;
}
