/** The services of a node that routes use. `src/node.ts` creates them. */
import type { FastifyPluginAsync } from 'fastify';
import type { Cluster, PeerClient, ScatterGather, Signatures } from '../dht/index.js';
import type { ImageService } from '../imagery/index.js';
import type { ScenePartService } from '../ingest/index.js';
import type { JobService, Process, TaskExecutor } from '../jobs/index.js';
import type { NodeMetrics } from '../metrics/index.js';
import type { TileFinder } from '../query/index.js';
import type { ObjectStore, Storage } from '../storage/index.js';
import type { Subscriptions } from '../subscriptions/index.js';
import type { Rendezvous, TextureIndex } from '../training/index.js';

/** The services of a node in a cluster. */
export interface ClusterService {
  cluster: Cluster;
  /** Sends queries to the owners of slots, and answers queries of other nodes. */
  owners: ScatterGather;
  peers: Pick<PeerClient, 'call' | 'clockOffsets' | 'failures'>;
  objects: Pick<ObjectStore, 'head'>;
  /** False if the node coordinates itself by its data folder. */
  hasEtcd: boolean;
  signatures: Signatures;
  /** Runs tasks of jobs that any node leads. */
  tasks: TaskExecutor;
  /** Makes parts of scenes that other nodes ingest. */
  sceneParts: ScenePartService;
  /** Accepts connections of nodes that train one model together with this node. */
  rendezvous: Rendezvous;
}

export interface Services {
  version: string;
  nodeId: string;
  storage: Storage;
  /** Finds tiles; in a cluster, on all nodes. */
  finder: TileFinder;
  cluster: ClusterService | undefined;
  imagery: ImageService;
  /** The textures of cells. */
  textures: TextureIndex;
  jobs: JobService;
  subscriptions: Subscriptions;
  metrics: NodeMetrics;
  processes: Map<string, Process>;
  /** Folders whose files `POST /ingest` may name, as real paths. */
  allowedFolders: string[];
  /** Maximum bytes of an uploaded file. */
  maxUpload: number;
}

/** A group of routes. Fastify registers it in a scope of its own. */
export type RouteGroup = FastifyPluginAsync<{ services: Services }>;
