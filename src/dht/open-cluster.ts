/** Opens what a node of a cluster needs, from its configuration. */
import { join } from 'node:path';
import { type CoordinationStore, EtcdStore, LevelStore, MeasuredKvStore } from '../coordination/index.js';
import { messageOf } from '../errors.js';
import { messageCheck, objectOf } from '../json-schema.js';
import type { ClusterMetrics } from '../metrics/index.js';
import {
  MeasuredStore,
  makeFolderDurably,
  type ObjectStore,
  openObjectStore,
  type Storage,
} from '../storage/index.js';
import { Cluster } from './cluster.js';
import { peerRefused } from './errors.js';
import { listMembers, type Member } from './membership/membership.js';
import { type RestoreOptions, type RestoreReport, restoreCoordination } from './recovery/restore-etcd.js';
import { PeerClient } from './rpc/peer-client.js';
import { ScatterGather } from './scatter-gather/scatter-gather.js';

export interface ClusterConfig {
  /** Shared store of tiles: `s3://bucket/prefix` or `file:///folder`. */
  store: string;
  /** Addresses of etcd. Without, the node is the only one of its store, and the data folder coordinates. */
  etcd: string[];
  /** Name of the cluster in etcd, where several use it. */
  name: string;
  /** Address at which other nodes reach this one. */
  advertise: string;
  zone: string;
  weight: number;
  /** Owners of each slot, where the cluster is new; 2 by default. */
  owners?: number;
  /** That all nodes share. */
  secret: string;
  /** How long a node is away before others take its place, ms. */
  grace?: number;
  metrics?: ClusterMetrics;
  /** Breaks off the start. It has no effect later. */
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
  secret: string;
  close(): Promise<void>;
}

/** Of the documents that nodes exchange. Nodes of format 2 know no textures; those of format 1 would sweep all but one version of a model. */
const DOCUMENT_FORMAT = 3;
/** A node that is alone needs no second owner. */
const OWNERS_OF_SINGLE_NODE = 1;
const DEFAULT_OWNERS = 2;

export async function openCluster(storage: Storage, config: ClusterConfig): Promise<OpenCluster> {
  const {
    store,
    etcd,
    name,
    advertise: url,
    zone,
    weight,
    secret,
    grace: gracePeriodMs,
    metrics,
    signal,
    software,
    onStatus,
    onFailure,
  } = config;
  const opened = await openObjectStore(store);
  const objects = metrics ? new MeasuredStore(opened, metrics.store) : opened;
  const isAlone = etcd.length === 0;
  const ownOrEtcd = isAlone ? await openOwnStore(storage.dir) : new EtcdStore(etcd, name);
  const coordination = metrics?.etcd ? new MeasuredKvStore(ownOrEtcd, metrics.etcd) : ownOrEtcd;
  const { id } = storage.folder.node;
  const member = { id, url, zone, weight, software, format: DOCUMENT_FORMAT };
  const owners = isAlone ? OWNERS_OF_SINGLE_NODE : (config.owners ?? DEFAULT_OWNERS);
  const peers = new PeerClient(secret);
  const closeRest = async () => {
    peers.close();
    await coordination.close();
    objects.close();
  };
  try {
    if (ownOrEtcd instanceof EtcdStore) await reportEtcdWarnings(ownOrEtcd, onFailure);
    await handshake(peers, id, await listMembers(coordination));
    signal?.throwIfAborted();
    const cluster = await Cluster.join({
      member,
      storage,
      objects,
      coordination,
      coordinationLabel: isAlone ? `node ${id} alone, without --etcd` : etcdLabel(name),
      peers,
      owners,
      ...(gracePeriodMs !== undefined && { gracePeriodMs }),
      ...(metrics && { metrics }),
      ...(signal && { signal }),
      onStatus,
      onFailure,
    });
    const fixed = cluster.placement.owners;
    if (config.owners !== undefined && owners !== fixed)
      onFailure(
        new Error(`--owners ${owners} has no effect: tiles of this cluster have ${fixed} since it was made`),
      );
    const close = async () => {
      await cluster.close();
      await closeRest();
    };
    const all = new ScatterGather(storage, cluster, peers);
    return { cluster, owners: all, peers, objects, coordination, hasEtcd: !isAlone, secret, close };
  } catch (error) {
    await closeRest();
    throw error;
  }
}

/** The coordination store of a node that is alone. LevelDB does not make the name of its folder durable. */
async function openOwnStore(dir: string): Promise<LevelStore> {
  const folder = join(dir, 'coordination');
  await makeFolderDurably(folder);
  return LevelStore.open(folder);
}

const etcdLabel = (name: string) => `an etcd with --cluster-name ${name}`;

/** What the operator of etcd should know. It keeps no node from starting. */
async function reportEtcdWarnings(etcd: EtcdStore, onFailure: (error: unknown) => void): Promise<void> {
  try {
    for (const warning of await etcd.healthWarnings()) onFailure(new Error(warning));
  } catch (error) {
    onFailure(error);
  }
}

/** Where the running nodes are greeted. */
export const HANDSHAKE_PATH = '/cluster/internal/greeting';
const HANDSHAKE_TIMEOUT_MS = 1000;
const checkHandshake = messageCheck(objectOf({}));

/**
 * Throws TW_DHT_REFUSED where a running node does not take messages of this one: later, that would show only as answers that lack tiles. A
 * node that does not answer says nothing about it.
 */
async function handshake(peers: PeerClient, self: string, members: Member[]): Promise<void> {
  const others = members.filter(({ id }) => id !== self);
  await Promise.all(
    others.map(async (peer) => {
      try {
        await peers.call(peer, HANDSHAKE_PATH, {}, HANDSHAKE_TIMEOUT_MS, checkHandshake);
      } catch (error) {
        const said = /: 401 (\{.*\})$/s.exec(messageOf(error))?.[1];
        if (said === undefined) return;
        throw peerRefused.because(error, peer.id, peer.url, detailOf(said));
      }
    }),
  );
}

/** The detail of a problem document; the text itself if it is not one, or was cut. */
function detailOf(problem: string): string {
  try {
    const { detail } = JSON.parse(problem) as { detail?: unknown };
    return typeof detail === 'string' ? detail : problem;
  } catch {
    return problem;
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
    return await restoreCoordination(coordination, objects, {
      coordinationLabel: etcdLabel(name),
      ...(onWait && { onWait }),
    });
  } finally {
    await coordination.close();
    objects.close();
  }
}
