/** Lets the owners of cells make parts of a remote scene: divides its cells among them, and sends the messages about the parts. */

import {
  type Cluster,
  cellSlotLookup,
  type PeerClient,
  peerFailed,
  readableOwners,
  streamLines,
} from '../dht/index.js';
import {
  ERROR_DOCUMENT_SCHEMA,
  type ErrorDocument,
  fromErrorDocument,
  messageOf,
  TilewrightError,
} from '../errors.js';
import { type RemoteItem, remoteChanged } from '../remote/index.js';
import {
  type CollectionRecord,
  checkEncodedTiles,
  decodeTiles,
  type EncodedTiles,
  FILE_NAME_SCHEMA,
  type LogLevel,
  type TileBatch,
  VERSION_SCHEMA,
} from '../storage/index.js';
import { type Check, COUNT, listOf, messageCheck, NUMBER, objectOf, TEXT } from '../utils/json-schema.js';
import { plural } from '../utils/text.js';
import type { NegativeCount } from './cut/negative-reflectances.js';
import type { CellOwners, MadePart, WantedPart } from './owners.js';
import type { ScenePlan } from './plan.js';
import type { IngestOptions } from './scene.js';

export interface SlotBlocks {
  /** Nodes that can read the slot, the preferred one first; not empty. */
  nodes: readonly string[];
  /** Bytes of the blocks of the files that the cells of the slot need, by block. */
  blocks: ReadonlyMap<string, number>;
  /** Number of the cells. */
  cells: number;
}

/** Later sweeps hardly move a slot. */
const MAX_SWEEPS = 8;

/**
 * Returns the node of each slot. A block at the border of two nodes is read by both, so slots that share blocks should be on one node, but
 * no node should have much more work than the others. Both lower the sum of the squares of the loads of the nodes, divided by their
 * weights. The load is the bytes of the blocks, and as much again for cutting all cells. Each slot starts at its first node; in each sweep
 * it moves to the node that lowers the sum most. `weightOf` returns the relative work of a node, above 0.
 */
export function assignSlots(slots: readonly SlotBlocks[], weightOf: (node: string) => number): string[] {
  const all = new NodeLoad(0);
  for (const slot of slots) all.add(slot);
  const bytesPerCell = all.load / slots.reduce((sum, { cells }) => sum + cells, 0);
  const loads = new Map(
    slots.flatMap(({ nodes }) => nodes).map((node) => [node, new NodeLoad(bytesPerCell)]),
  );
  const chosen = slots.map((slot) => {
    loads.get(slot.nodes[0]!)!.add(slot);
    return slot.nodes[0]!;
  });
  const costOf = (node: string, slot: SlotBlocks) => {
    const current = loads.get(node)!;
    return ((current.load + current.increase(slot)) ** 2 - current.load ** 2) / weightOf(node);
  };
  for (let sweep = 0, hasMoved = true; hasMoved && sweep < MAX_SWEEPS; sweep++) {
    hasMoved = false;
    for (const [i, slot] of slots.entries()) {
      const from = chosen[i]!;
      loads.get(from)!.remove(slot);
      let to = from;
      for (const node of slot.nodes) if (costOf(node, slot) < costOf(to, slot)) to = node;
      loads.get(to)!.add(slot);
      chosen[i] = to;
      hasMoved ||= to !== from;
    }
  }
  return chosen;
}

/** The work of a node. Invariant: `load` counts each block that at least one of its slots needs once, and all of its cells. */
class NodeLoad {
  load = 0;
  private readonly counts = new Map<string, number>();

  constructor(private readonly bytesPerCell: number) {}

  add(slot: SlotBlocks): void {
    this.load += this.increase(slot);
    for (const block of slot.blocks.keys()) this.counts.set(block, (this.counts.get(block) ?? 0) + 1);
  }

  remove(slot: SlotBlocks): void {
    for (const block of slot.blocks.keys()) {
      const count = this.counts.get(block)!;
      if (count > 1) this.counts.set(block, count - 1);
      else this.counts.delete(block);
    }
    this.load -= this.increase(slot);
  }

  /** The load that a slot would add. */
  increase({ blocks, cells }: SlotBlocks): number {
    let sum = cells * this.bytesPerCell;
    for (const [block, bytes] of blocks) if (!this.counts.has(block)) sum += bytes;
    return sum;
  }
}

export const SCENE_PART_PATH = '/cluster/internal/scene-part';

/** The remote files of a scene: an Item of a catalog, or a single file. */
export interface ScenePartSource {
  /** Address of the catalog, which some credentials depend on. */
  catalog?: string;
  /** Keys or bands of the assets that are read; all with data if absent. */
  assets?: string[];
  item?: RemoteItem;
  /** Address of a single file. */
  file?: string;
}

export interface ScenePartRequest {
  job: string;
  source: ScenePartSource;
  options: IngestOptions;
  collection: CollectionRecord;
  scene: string;
  /** Version of the write of the node that asks. */
  version: string;
  /** Fingerprint of the scene: a node that computes another one must not make tiles. */
  fingerprint: string;
  cells: string[];
}

export interface ScenePartResult {
  /** Version of the tiles. */
  version: string;
  tiles: TileBatch | EncodedTiles;
  negative: NegativeCount;
}

/** The answer is a stream of events; the last one is the result or an error. */
export type ScenePartEvent =
  | { beat: true }
  | { share: number }
  | { result: ScenePartResult }
  | { error: ErrorDocument };

/** Some members become names of folders. Nodes of other versions may send more members. */
export const SCENE_PART_SCHEMA = objectOf({
  job: VERSION_SCHEMA,
  source: objectOf(
    {},
    {
      catalog: TEXT,
      assets: listOf(TEXT),
      item: objectOf({ id: TEXT, url: TEXT, document: { type: 'object' } }),
      file: TEXT,
    },
  ),
  options: { type: 'object' },
  collection: objectOf({ id: FILE_NAME_SCHEMA, grid: { enum: ['geohash', 'quadtile'] }, precision: COUNT }),
  scene: FILE_NAME_SCHEMA,
  version: VERSION_SCHEMA,
  fingerprint: TEXT,
  cells: { ...listOf({ type: 'string', pattern: '^[0-9a-z]{1,24}$' }), minItems: 1 },
});

const checkEvent = messageCheck(
  objectOf(
    {},
    {
      share: NUMBER,
      result: objectOf({
        version: VERSION_SCHEMA,
        tiles: { type: 'object' },
        negative: objectOf({ clear: COUNT, negative: COUNT }),
      }),
      error: ERROR_DOCUMENT_SCHEMA,
    },
  ),
);

const checkScenePartEvent: Check = (value) => {
  const fault = checkEvent(value);
  if (fault !== undefined) return fault;
  const event = value as ScenePartEvent;
  return 'result' in event ? checkEncodedTiles(event.result.tiles) : undefined;
};

/** A node that is silent for this long is considered dead. Nodes send a sign of life every second. */
const IDLE_TIMEOUT_MS = 5000;
/** How long a job does without a node that failed. */
const AVOID_MS = 60_000;

export interface ScenePartCluster {
  cluster: Pick<Cluster, 'self' | 'nodes' | 'placement' | 'prefixLengths' | 'peer'>;
  peers: PeerClient;
}

/** A scene that several nodes can read. */
interface PartedScene {
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
