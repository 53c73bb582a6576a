import { type CoordinationStore, compareAndSet, parseJsonValue, readKey } from '../../coordination/index.js';
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

export const CLUSTER_KEY = 'cluster';
const FIELDS: (keyof ClusterDocument)[] = ['id', 'format', 'prefixLengths'];

/** The cluster of a coordination store; undefined if it has none. */
export async function readCluster(store: CoordinationStore): Promise<ClusterDocument | undefined> {
  const kv = await readKey(store, CLUSTER_KEY);
  return kv && parseJsonValue<ClusterDocument>(kv, FIELDS);
}

/** Throws TW_DHT_OTHER_CLUSTER if the properties of a cluster are not the wanted ones. */
export function requireSameCluster(existing: ClusterDocument, wanted: ClusterDocument): void {
  const [found, text] = [describeCluster(existing), describeCluster(wanted)];
  if (found !== text) throw otherCluster(found, text);
}

/** The document of the existing cluster; `proposed` is stored if there is none. One of several concurrent calls wins. */
export async function createClusterIfAbsent(
  store: CoordinationStore,
  proposed: ClusterDocument,
): Promise<ClusterDocument> {
  const value = JSON.stringify(proposed);
  const { current } = await compareAndSet(store, { key: CLUSTER_KEY, value, revision: 0 });
  return parseJsonValue<ClusterDocument>(current!, FIELDS);
}

function describeCluster({ id, format, prefixLengths }: ClusterDocument): string {
  const lengths = Object.entries(prefixLengths).sort(([a], [b]) => (a < b ? -1 : 1));
  return `${id} (format ${format}, prefixes ${lengths.map(([grid, length]) => `${grid} ${length}`).join(', ')})`;
}
