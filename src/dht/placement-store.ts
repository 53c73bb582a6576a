/** The shared placement, as this node knows and changes it, and its encoding as text. */

import { setTimeout as sleep } from 'node:timers/promises';
import { deflateRawSync, inflateRawSync } from 'node:zlib';
import {
  type CoordinationStore,
  compareAndSet,
  readKey,
  type StoredValue,
  type Watch,
  watchLoop,
} from '../coordination/index.js';
import { messageOf } from '../errors.js';
import { type GridName, grids } from '../grid/index.js';
import { parseJsonOr } from '../utils/json-text.js';
import { badPlacement } from './errors.js';
import {
  type Owner,
  type OwnerState,
  type Placement,
  type PlacementNode,
  replicationTarget,
  stayingOwners,
} from './placement.js';
import type { BytesBySlot } from './placement-changes.js';
import { SLOTS } from './slots.js';

const PLACEMENT_FORMAT = 1;

/**
 * Owners are 16 bits each, little endian, slot after slot: 13 bits for the index of the node in `nodes`, 2 for the state, 1 for the last
 * owner of the slot. `NO_OWNERS` stands for a slot without owners.
 */
const STATES: readonly OwnerState[] = ['initializing', 'available', 'leaving'];
const MAX_NODES = 2 ** 13;
const LAST_OWNER_BIT = 2 ** 15;
const NO_OWNERS = 2 ** 16 - 1;
/** Far more than any cluster needs. The limit keeps a small document from exhausting the memory. */
const MAX_SLOT_BYTES = 64 * SLOTS;

/** JSON, about 40 KB for 50 nodes and two owners. Throws TW_DHT_BAD_PLACEMENT if the invariants are violated. */
export function encodePlacement(placement: Placement): string {
  requireValid(placement);
  const { slots, nodes, ...rest } = placement;
  const indexOf = new Map(nodes.map(({ id }, index) => [id, index]));
  const words = slots.flatMap((owners) =>
    owners.length === 0
      ? NO_OWNERS
      : owners.map(
          ({ node, state }, i) =>
            indexOf.get(node)! +
            MAX_NODES * STATES.indexOf(state) +
            (i === owners.length - 1 ? LAST_OWNER_BIT : 0),
        ),
  );
  const bytes = Buffer.alloc(2 * words.length);
  words.forEach((word, i) => {
    bytes.writeUInt16LE(word, 2 * i);
  });
  return JSON.stringify({
    format: PLACEMENT_FORMAT,
    ...rest,
    nodes,
    slots: deflateRawSync(bytes).toString('base64'),
  });
}

/** Parses a placement. Throws TW_DHT_BAD_PLACEMENT with the violated rule. */
export function decodePlacement(text: string): Placement {
  const { format, version, prefixLengths, owners, nodes, slots } = parseObject(text);
  if (format !== PLACEMENT_FORMAT)
    throw badPlacement(`its format is ${format} instead of ${PLACEMENT_FORMAT}`);
  if (!Array.isArray(nodes) || typeof slots !== 'string') throw badPlacement('nodes or slots are missing');
  const placement = {
    version: version as number,
    prefixLengths: prefixLengths as Placement['prefixLengths'],
    owners: owners as number,
    nodes: nodes as PlacementNode[],
    slots: unpackSlots(slots, nodes as PlacementNode[]),
  };
  requireValid(placement);
  return placement;
}

function parseObject(text: string): Record<string, unknown> {
  const value = parseJsonOr<Record<string, unknown> | null>(text, (cause) =>
    badPlacement.because(cause, `it is not JSON (${messageOf(cause)})`),
  );
  if (typeof value === 'object' && value !== null) return value;
  throw badPlacement('it is not a JSON object');
}

function unpackSlots(base64: string, nodes: readonly PlacementNode[]): Owner[][] {
  const bytes = inflatePayload(base64);
  const slots: Owner[][] = [];
  // Few lists of owners are different; slots with equal owners share one list.
  const known = new Map<string, Owner[]>();
  let owners: Owner[] = [];
  let begin = 0;
  for (let at = 0; at + 1 < bytes.length; at += 2) {
    const word = bytes.readUInt16LE(at);
    if (word !== NO_OWNERS) {
      const node = nodes[word % MAX_NODES];
      const state = STATES[(word % LAST_OWNER_BIT) >> 13];
      if (!node || !state) throw badPlacement(`slot ${slots.length} has an unknown owner`);
      owners.push({ node: node.id, state });
    }
    if (word < LAST_OWNER_BIT) continue;
    const words = bytes.toString('latin1', begin, at + 2);
    const same = known.get(words);
    slots.push(same ?? owners);
    if (!same) known.set(words, owners);
    owners = [];
    begin = at + 2;
  }
  if (owners.length > 0 || slots.length !== SLOTS)
    throw badPlacement(`it has ${slots.length} complete slots instead of ${SLOTS}`);
  return slots;
}

function inflatePayload(base64: string): Buffer {
  try {
    return inflateRawSync(Buffer.from(base64, 'base64'), { maxOutputLength: MAX_SLOT_BYTES });
  } catch (error) {
    throw badPlacement.because(error, `its slots are damaged (${messageOf(error)})`);
  }
}

/** Throws TW_DHT_BAD_PLACEMENT if an invariant of `Placement` is violated. */
function requireValid({ version, prefixLengths, owners, nodes, slots }: Placement): void {
  if (!isCount(version, 0)) throw badPlacement(`its version is ${version}`);
  if (!isCount(owners, 1)) throw badPlacement(`its number of owners is ${owners}`);
  for (const { name, maxPrecision } of grids) {
    const length = prefixLengths?.[name as GridName];
    if (!isCount(length, 1) || length > maxPrecision)
      throw badPlacement(`the prefix length of ${name} is ${length}`);
  }
  if (nodes.length > MAX_NODES) throw badPlacement(`it has ${nodes.length} nodes; the limit is ${MAX_NODES}`);
  nodes.forEach((node, i) => {
    const fault = nodeFault(node, nodes[i - 1]);
    if (fault) throw badPlacement(`node ${node?.id} ${fault}`);
  });
  const active = new Map(nodes.filter(({ draining }) => !draining).map(({ id, zone }) => [id, { zone }]));
  const { copies, zones } = replicationTarget([...active.values()], owners);
  const checked = new Set<readonly Owner[]>();
  slots.forEach((all, slot) => {
    if (checked.has(all)) return;
    checked.add(all);
    const staying = stayingOwners(all);
    if (new Set(all.map(({ node }) => node)).size < all.length)
      throw badPlacement(`slot ${slot} has a node twice`);
    if (all.slice(0, staying.length).some(({ state }) => state === 'leaving'))
      throw badPlacement(`slot ${slot} has a leaving owner before others`);
    const drained = staying.find((node) => !active.has(node));
    if (drained !== undefined) throw badPlacement(`slot ${slot} is owned by ${drained}, which is draining`);
    if (staying.length !== copies)
      throw badPlacement(`slot ${slot} has ${staying.length} owners instead of ${copies}`);
    const zoneCount = new Set(staying.map((node) => active.get(node)!.zone)).size;
    if (zoneCount < zones)
      throw badPlacement(`the owners of slot ${slot} are in too few zones: ${zoneCount}`);
  });
}

function isCount(value: unknown, least: number): value is number {
  return Number.isInteger(value) && (value as number) >= least;
}

/** The fault of a node that follows `before` in the list; undefined for a valid node. */
function nodeFault(node: PlacementNode, before: PlacementNode | undefined): string | undefined {
  const { id, zone, weight, draining } = node ?? {};
  if (typeof id !== 'string' || id === '') return 'has no id';
  if (before && id <= before.id) return 'is duplicated or out of order';
  if (typeof zone !== 'string') return 'has no zone';
  if (!Number.isFinite(weight) || weight <= 0) return `has the weight ${weight}`;
  if (typeof draining !== 'boolean') return 'has an invalid draining flag';
  return undefined;
}

export const PLACEMENT_KEY = 'placement';

/**
 * The stored placement document; undefined before the first node. A serializable read may be slightly stale, but works without a majority
 * of the etcd servers.
 */
export function readPlacement(
  store: CoordinationStore,
  options: { serializable?: boolean; timeoutMs?: number } = {},
): Promise<StoredValue | undefined> {
  return readKey(store, PLACEMENT_KEY, options);
}

/** Calls `onChange` with the placement at the start and whenever it has a new revision. */
export function watchPlacement(
  store: CoordinationStore,
  onChange: (placement: StoredValue) => void,
  onError: (error: unknown) => void,
): Watch {
  let reported = 0;
  const read = async () => {
    const placement = await readPlacement(store);
    if (placement === undefined || placement.modRevision <= reported) return;
    reported = placement.modRevision;
    onChange(placement);
  };
  return watchLoop(store, { key: PLACEMENT_KEY }, read, onError);
}

/** Minimum time between two changes by one node. */
export const MIN_UPDATE_INTERVAL_MS = 1000;

interface PlacementManagerOptions {
  coordination: CoordinationStore;
  /** The placement of a new cluster. */
  empty: Placement;
  /** Asks the nodes for the sizes of their slots. */
  bytes: () => Promise<BytesBySlot>;
  /** Called when a later placement is known. */
  onChange: () => void;
  signal: AbortSignal;
}

/** Invariants: versions only grow; a change is computed from the stored document and replaces exactly that one. */
export class PlacementManager {
  private latest: Placement | undefined;
  private changedAt = -Infinity;
  /** The last parsed document: the same text arrives from a change and from the watch. */
  private lastParsed: { text: string; placement: Placement } | undefined;

  constructor(private readonly options: PlacementManagerOptions) {}

  /** The newest known placement; undefined until one is known. */
  get current(): Placement | undefined {
    return this.latest;
  }

  /** True if a change need not wait now. */
  get canUpdateNow(): boolean {
    return performance.now() - this.changedAt >= MIN_UPDATE_INTERVAL_MS;
  }

  /** Adopts a stored placement if it is newer. */
  onStored({ value }: StoredValue): void {
    const placement = this.parse(value);
    if (this.latest && placement.version <= this.latest.version) return;
    this.latest = placement;
    this.options.onChange();
  }

  /** Makes a change that depends on the sizes of slots; nodes are asked for them only if something changes. */
  async updateWithSlotSizes(change: (placement: Placement, bytes?: BytesBySlot) => Placement): Promise<void> {
    const stored = await readPlacement(this.options.coordination);
    const before = stored && this.parse(stored.value);
    const isSame = before !== undefined && change(before) === before;
    const bytes = isSame || !stored ? undefined : await this.options.bytes();
    await this.update((placement) => change(placement, bytes));
  }

  /** Changes the stored placement, at most once a second. */
  async update(change: (placement: Placement) => Placement): Promise<void> {
    const { coordination, empty, signal } = this.options;
    const delayMs = this.changedAt + MIN_UPDATE_INTERVAL_MS - performance.now();
    if (delayMs > 0) await sleep(delayMs, undefined, { signal });
    let stored = await readPlacement(coordination);
    for (;;) {
      const before = stored ? this.parse(stored.value) : empty;
      const after = change(before);
      if (after === before && stored) {
        this.onStored(stored);
        return;
      }
      const value = encodePlacement(after);
      const revision = stored?.modRevision ?? 0;
      const { set, current } = await compareAndSet(coordination, { key: PLACEMENT_KEY, value, revision });
      if (set) {
        this.changedAt = performance.now();
        this.onStored(current!);
        return;
      }
      stored = current;
    }
  }

  private parse(text: string): Placement {
    if (this.lastParsed?.text !== text) this.lastParsed = { text, placement: decodePlacement(text) };
    return this.lastParsed.placement;
  }
}
