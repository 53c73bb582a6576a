/** Lets the owners of cells make the tiles of a remote scene. */
import {
  type Cluster,
  cellSlotLookup,
  type PeerClient,
  peerFailed,
  readableOwners,
  streamLines,
} from '../../dht/index.js';
import { fromErrorDocument, messageOf, TilewrightError } from '../../errors.js';
import { remoteChanged } from '../../remote/index.js';
import { decodeTiles, type LogLevel } from '../../storage/index.js';
import { plural } from '../../utils/plural.js';
import type { IngestOptions } from '../ingest-options.js';
import type { ScenePlan } from '../plan/index.js';
import type { CellOwners, MadePart, WantedPart } from '../remote/index.js';
import { assignSlots } from './assign-slots.js';
import {
  checkScenePartEvent,
  SCENE_PART_PATH,
  type ScenePartEvent,
  type ScenePartRequest,
  type ScenePartResult,
  type ScenePartSource,
} from './scene-part-messages.js';

/** A node that is silent for this long is considered dead. Nodes send a sign of life every second. */
const IDLE_TIMEOUT_MS = 5000;
/** How long a job does without a node that failed. */
const AVOID_MS = 60_000;

export interface ScenePartCluster {
  cluster: Pick<Cluster, 'self' | 'nodes' | 'placement' | 'prefixLengths' | 'peer'>;
  peers: PeerClient;
}

/** A scene that several nodes can read. */
export interface PartedScene {
  source: ScenePartSource;
  /** In messages. */
  name: string;
  /** Returns the bytes of the blocks that cells need, by block. */
  blocksOf(plan: ScenePlan, cells: string[]): Map<string, number>;
}

/** The nodes that make parts of the scenes of one job. Invariant: a node that failed gets no part for AVOID_MS. */
export class ScenePartClient {
  private readonly avoidedUntil = new Map<string, number>();
  private readonly cellsMade = new Map<string, number>();

  constructor(
    private readonly nodes: ScenePartCluster,
    private readonly job: { id: string; log(level: LogLevel, text: string): void },
    private readonly options: IngestOptions,
  ) {}

  /** Returns the owners of the cells of a scene. */
  ownersFor(scene: PartedScene): CellOwners {
    return {
      divide: (plan, cells) => this.divide(plan, cells, scene),
      make: (node, wanted, onShare, signal) => this.make(node, { ...scene, wanted }, onShare, signal),
    };
  }

  /** Logs the work of the other nodes at the end of the job. */
  logSummary(): void {
    const nodes = [...this.cellsMade].map(([node, cells]) => `node ${node}: ${plural(cells, 'cell')}`);
    if (nodes.length > 0) this.job.log('info', `read by other nodes: ${nodes.join(', ')}`);
  }

  private divide(
    plan: ScenePlan,
    cells: string[],
    { blocksOf }: PartedScene,
  ): ReturnType<CellOwners['divide']> {
    const { self, nodes, placement, prefixLengths } = this.nodes.cluster;
    if (nodes.every(({ id }) => id === self)) return { own: cells, others: new Map() };
    const now = performance.now();
    const isAble = (node: string) =>
      node === self || (nodes.some(({ id }) => id === node) && now >= (this.avoidedUntil.get(node) ?? 0));
    const slotOfCell = cellSlotLookup(prefixLengths);
    const cellsOf = new Map<number, string[]>();
    for (const geocode of cells) {
      const slot = slotOfCell({ grid: plan.grid.name, geocode });
      const known = cellsOf.get(slot) ?? [];
      cellsOf.set(slot, known);
      known.push(geocode);
    }
    const slots = [...cellsOf].map(([slot, own]) => {
      const able = readableOwners(placement.slots[slot]!)
        .map(({ node }) => node)
        .filter(isAble);
      return {
        own,
        nodes: able.length > 0 ? able : [self],
        blocks: blocksOf(plan, own),
        cells: own.length,
      };
    });
    const weights = new Map(placement.nodes.map(({ id, weight }) => [id, weight]));
    const others = new Map<string, string[]>();
    for (const [i, node] of assignSlots(slots, (id) => weights.get(id) ?? 1).entries()) {
      const known = others.get(node) ?? [];
      others.set(node, known);
      for (const cell of slots[i]!.own) known.push(cell);
    }
    const own = others.get(self) ?? [];
    others.delete(self);
    return { own, others };
  }

  private async make(
    node: string,
    { source, name, wanted }: PartedScene & { wanted: WantedPart },
    onShare: (share: number) => void,
    signal: AbortSignal,
  ): Promise<MadePart | undefined> {
    const { write, fingerprint, cells } = wanted;
    const { id: job, log } = this.job;
    const { collection, scene, version } = write;
    const options = this.options;
    const request = { job, source, options, collection, scene, version, fingerprint, cells };
    try {
      const { tiles, ...made } = await this.request(node, request, onShare, signal);
      this.cellsMade.set(node, (this.cellsMade.get(node) ?? 0) + cells.length);
      return { ...made, tiles: decodeTiles(tiles) };
    } catch (error) {
      signal.throwIfAborted();
      // The node can read other files.
      if (!remoteChanged.is(error)) this.avoidedUntil.set(node, performance.now() + AVOID_MS);
      const reason = `${name}: node ${node} cannot read its ${plural(cells.length, 'cell')}, so this node reads them`;
      const code = error instanceof TilewrightError ? ` [${error.code}]` : '';
      log('warning', `${reason}: ${messageOf(error)}${code}`);
      return undefined;
    }
  }

  private async request(
    node: string,
    message: ScenePartRequest,
    onShare: (share: number) => void,
    signal: AbortSignal,
  ): Promise<ScenePartResult> {
    const { cluster, peers } = this.nodes;
    const peer = cluster.peer(node);
    if (!peer) throw peerFailed(node, 'an unknown address', 'it is not running');
    const lines = streamLines<ScenePartEvent>({
      ...{ peers, peer, path: SCENE_PART_PATH, message, check: checkScenePartEvent },
      ...{ idleTimeoutMs: IDLE_TIMEOUT_MS, signal },
    });
    for await (const line of lines) {
      if ('result' in line) return line.result;
      if ('error' in line) throw fromErrorDocument(line.error);
      if ('share' in line) onShare(line.share);
    }
    throw peerFailed(node, peer.url, 'it broke off');
  }
}
