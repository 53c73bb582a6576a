import {
  type CoordinationStore,
  compareAndSet,
  firstKeyValue,
  parseJsonValue,
} from '../../coordination/index.js';
import { otherCluster } from '../errors.js';

/** What never changes in the life of a cluster. */
export interface ClusterDocument {
  id: string;
  /** Of the values in the coordination store and the objects in the tile store. */
  format: number;
  /** Letters of a geocode that choose its slot, by grid. */
  prefixLengths: Record<string, number>;
}

const KEY = 'cluster';

/** Id of the cluster that the coordination store has; undefined where there is none. */
export async function readClusterId(store: CoordinationStore): Promise<string | undefined> {
  const { gets } = await store.read([{ key: KEY }]);
  const kv = firstKeyValue(gets[0]!);
  return kv && parseJsonValue<ClusterDocument>(kv, ['id']).id;
}

/** Writes the document of a new cluster, or compares it with that of the cluster that is there: TW_DHT_OTHER_CLUSTER. */
export async function verifyClusterDocument(
  store: CoordinationStore,
  wanted: ClusterDocument,
): Promise<void> {
  const found = await createClusterIfAbsent(store, wanted);
  if (describeCluster(found) !== describeCluster(wanted))
    throw otherCluster(describeCluster(found), describeCluster(wanted));
}

/** The document of the cluster that is there; where there is none, this one is written. Of several at once, one wins. */
export async function createClusterIfAbsent(
  store: CoordinationStore,
  proposed: ClusterDocument,
): Promise<ClusterDocument> {
  const { current } = await compareAndSet(store, {
    key: KEY,
    value: encodeClusterDocument(proposed),
    revision: 0,
  });
  return parseJsonValue<ClusterDocument>(current!, ['id', 'format', 'prefixLengths']);
}

export const encodeClusterDocument = ({ id, format, prefixLengths }: ClusterDocument) =>
  JSON.stringify({ id, format, prefixLengths });

function describeCluster({ id, format, prefixLengths }: ClusterDocument): string {
  const lengths = Object.entries(prefixLengths).sort(([a], [b]) => (a < b ? -1 : 1));
  return `${id} (format ${format}, prefixes ${lengths.map(([grid, length]) => `${grid} ${length}`).join(', ')})`;
}
