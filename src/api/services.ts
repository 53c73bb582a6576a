import type { Cluster, PeerClient, ScatterGather } from '../dht/index.js';
import type { ImageService } from '../imagery/index.js';
import type { JobService, Process, TaskExecutor } from '../jobs/index.js';
import type { NodeMetrics } from '../metrics/index.js';
import type { TileFinder } from '../query/index.js';
import type { ObjectStore, Storage } from '../storage/index.js';
import type { Rendezvous, TextureIndex } from '../training/index.js';

/** Where the node is one of many. */
export interface ClusterService {
  cluster: Cluster;
  /** How it asks the others, and answers them. */
  owners: ScatterGather;
  peers: Pick<PeerClient, 'call' | 'failures'>;
  objects: Pick<ObjectStore, 'head'>;
  /** False if the node coordinates itself by its data folder. */
  hasEtcd: boolean;
  /** That nodes share. */
  secret: string;
  /** The work that this node does for jobs of any. */
  tasks: TaskExecutor;
  /** Where other nodes come in that train one model with this one. */
  rendezvous: Rendezvous;
}

/** What the routes stand on. Wired in src/node.ts. */
export interface Services {
  version: string;
  nodeId: string;
  storage: Storage;
  /** What is known of all tiles, of all nodes where there are some. */
  finder: TileFinder;
  cluster: ClusterService | undefined;
  imagery: ImageService;
  /** What places look like. */
  textures: TextureIndex;
  jobs: JobService;
  metrics: NodeMetrics;
  processes: Map<string, Process>;
  /** Folders whose files `POST /ingest` may name, as real paths. */
  allowedFolders: string[];
  /** The most bytes of an uploaded file. */
  maxUpload: number;
}
