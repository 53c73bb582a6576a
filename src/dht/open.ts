/** Builds the parts of a cluster node from its configuration. */
import {
  type CoordinationStore,
  EtcdStore,
  measuredKvStore,
  openFolderStore,
} from '../coordination/index.js';
import type { ClusterMetrics } from '../metrics/index.js';
import { measuredStore, type ObjectStore, openObjectStore, type Storage } from '../storage/index.js';
import { plural } from '../utils/text.js';
import { Cluster } from './cluster.js';
import { listMembers } from './membership.js';
import { handshake, PeerClient } from './peers.js';
import { type RestoreOptions, type RestoreReport, restoreCoordination } from './recovery.js';
import { ScatterGather } from './scatter-gather.js';
import { Signatures } from './signatures.js';

export interface ClusterConfig {
  /** The object store: `s3://bucket/prefix` or `file:///folder`. */
  store: string;
  /** Addresses of the etcd servers. Without any, the node is the only one of its store and coordinates through its data folder. */
  etcd: string[];
  /** Name of the cluster in etcd, which several clusters may share. */
  name: string;
  /** The address at which other nodes reach this node. */
  advertise: string;
  zone: string;
  weight: number;
  /** Owners of each slot if the cluster is new; default 2. */
  owners?: number;
  /** The secret that all nodes share; two while it changes, of which the first signs. */
  secrets: readonly string[];
  /** How long a node may be missing before others take over its slots, ms. */
  grace?: number;
  metrics?: ClusterMetrics;
  /** Aborts the start; no effect later. */
  signal?: AbortSignal;
  software: string;
  onStatus?(text: string): void;
  onFailure(error: unknown): void;
}

export interface OpenCluster {
  cluster: Cluster;
  owners: ScatterGather;
  peers: PeerClient;
  objects: ObjectStore;
  coordination: CoordinationStore;
  /** False if the node coordinates itself by its data folder. */
  hasEtcd: boolean;
  signatures: Signatures;
  close(): Promise<void>;
}

/** The format of the documents that nodes exchange. */
const DOCUMENT_FORMAT = 5;
/** A single node needs no second owner. */
const OWNERS_OF_SINGLE_NODE = 1;
const DEFAULT_OWNERS = 2;

export async function openCluster(storage: Storage, config: ClusterConfig): Promise<OpenCluster> {
  const { store, etcd, name, zone, weight, secrets, metrics, signal, software, onStatus, onFailure } = config;
  const opened = await openObjectStore(store);
  const objects = metrics ? measuredStore(opened, metrics.store) : opened;
  const isSingle = etcd.length === 0;
  const ownOrEtcd = isSingle ? await openFolderStore(storage.dir) : new EtcdStore(etcd, name);
  const coordination = metrics?.etcd ? measuredKvStore(ownOrEtcd, metrics.etcd) : ownOrEtcd;
  const { id } = storage.folder.node;
  const member = { id, url: config.advertise, zone, weight, software, format: DOCUMENT_FORMAT };
  const owners = isSingle ? OWNERS_OF_SINGLE_NODE : (config.owners ?? DEFAULT_OWNERS);
  const signatures = new Signatures(id, secrets);
  const peers = new PeerClient(signatures, onFailure);
  const closeRest = async () => {
    peers.close();
    await coordination.close();
    objects.close();
  };
  try {
    if (ownOrEtcd instanceof EtcdStore) await reportEtcdWarnings(ownOrEtcd, onFailure);
    const others = (await listMembers(coordination)).filter((other) => other.id !== id);
    await handshake(peers, others);
    signal?.throwIfAborted();
    const cluster = await Cluster.join({
      member,
      storage,
      objects,
      coordination,
      coordinationLabel: isSingle ? `the single node ${id} without --etcd` : etcdLabel(name),
      peers,
      owners,
      gracePeriodMs: config.grace,
      metrics,
      signal,
      onStatus,
      onFailure,
    });
    const storedOwners = cluster.placement.owners;
    if (config.owners !== undefined && owners !== storedOwners)
      onFailure(
        new Error(
          `--owners ${owners} has no effect: each slot of this cluster has ${plural(storedOwners, 'owner')}`,
        ),
      );
    const close = async () => {
      await cluster.close();
      await closeRest();
    };
    const scatterGather = new ScatterGather(storage, cluster, peers);
    return {
      cluster,
      owners: scatterGather,
      peers,
      objects,
      coordination,
      hasEtcd: !isSingle,
      signatures,
      close,
    };
  } catch (error) {
    await closeRest();
    throw error;
  }
}

const etcdLabel = (name: string) => `an etcd with --cluster-name ${name}`;

/** Reports warnings for the operator of etcd. A failed check does not keep the node from starting. */
async function reportEtcdWarnings(etcd: EtcdStore, onFailure: (error: unknown) => void): Promise<void> {
  try {
    for (const warning of await etcd.healthWarnings()) onFailure(new Error(warning));
  } catch (error) {
    onFailure(error);
  }
}

/** Rebuilds the keys of a cluster in etcd from its tile store: see `restoreCoordination`. */
export async function restoreCluster({
  store,
  etcd,
  name,
  onWait,
}: Pick<ClusterConfig, 'store' | 'etcd' | 'name'> & Pick<RestoreOptions, 'onWait'>): Promise<RestoreReport> {
  const objects = await openObjectStore(store);
  const coordination = new EtcdStore(etcd, name);
  try {
    return await restoreCoordination(coordination, objects, { coordinationLabel: etcdLabel(name), onWait });
  } finally {
    await coordination.close();
    objects.close();
  }
}
