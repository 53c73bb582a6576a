/** Keeps the data folder of a node up to date with the commit log. */
import { setTimeout as sleep } from 'node:timers/promises';
import { raceAbort, SerialQueue } from '../async/index.js';
import type { Watch, WatchSignal } from '../coordination/index.js';
import type { ClusterMetrics } from '../metrics/index.js';
import {
  type Commit,
  type ObjectStore,
  REPLICATED_TABLES,
  type RecordEdit,
  type ReplicaRecord,
  type Storage,
  storeNotFound,
  type TileRecord,
  type TileVersion,
} from '../storage/index.js';
import { commitNotInLog, replicaBehind, slotsOutdated } from './errors.js';
import { checkpointRecords, checkpointTiles, readManifest } from './log/checkpoint.js';
import { type CommitLog, type CommittedEntry, entriesSince, type StoredCheckpoint } from './log/log.js';
import { readSegment, recordName, segmentName, slices, TileState } from './log/segment.js';
import { bytesBySlot, cellSlotLookup, type PrefixLengths, SlotSet, slotTest } from './slots.js';

interface ReplicaOptions {
  storage: Storage;
  objects: ObjectStore;
  log: CommitLog;
  /** Id of the cluster. */
  cluster: string;
  prefixLengths: PrefixLengths;
  /** The restore that the log belongs to. */
  epochId?: string;
  metrics?: Pick<ClusterMetrics, 'rebalanceBytes' | 'rebalanceSlots'>;
  /** Called when slots have to be loaded again, because the log no longer has all commits since. */
  onOutdated?: () => void;
  /** Called with errors of reading the log, which is retried. */
  onFailure?: (error: unknown) => void;
}

interface Waiter {
  seq: number;
  resolve: () => void;
  reject: (reason: unknown) => void;
}

/** Own commits that are kept until they are applied. */
const MAX_OWN_COMMITS = 64;
/** How often a change that waits for slots looks for them, ms. */
const POLL_INTERVAL_MS = 50;
/** Records that one step changes at most, except those of a commit. */
const PAGE_RECORDS = 250;

/**
 * Invariants: Between two steps, the data folder contains exactly the tiles of the loaded slots as of commit `applied`, and tiles of
 * outdated slots as of any commit, which nobody may read. All other records are as of `applied`, or newer while a checkpoint is loaded.
 * Steps run one after another. One batch changes the records, the number and the slots, so after a kill the replica resumes where it was.
 * The index, `applied` and the slots change in one turn of the event loop. `applied` only grows, unless the log was rebuilt. The index can
 * be read as of recent earlier commits, but not from before the replica got other slots or loaded a checkpoint.
 *
 * Slots and checkpoints are loaded in many short steps, so that commits do not wait long. The slots are outdated until the last step.
 */
export class Replica {
  private readonly queue = new SerialQueue();
  /** Slots are loaded and dropped one after another. */
  private readonly slotQueue = new SerialQueue();
  private waiters: Waiter[] = [];
  private isClosed = false;
  private watch: Watch | undefined;
  private readonly ownCommits = new Map<string, Commit>();
  /** Slots that were loaded before a checkpoint was, and have not been loaded again since. */
  private setAside = new SlotSet();
  private cachedBytes: { changes: number; bytes: Promise<Float64Array> } | undefined;

  private constructor(
    private readonly options: ReplicaOptions,
    private seq: number,
    private slotSet: SlotSet,
    private outdated: SlotSet,
    /** The restore that `seq` belongs to. */
    private epochId: string | undefined,
  ) {}

  /** Opens the replica in a folder that has been in the cluster before, or in an empty one. */
  static async open(options: ReplicaOptions): Promise<Replica> {
    const state = await options.storage.replica();
    const { applied = 0, slots = '', outdated = '', restored = options.epochId } = state ?? {};
    const sets = [SlotSet.fromText(slots), SlotSet.fromText(outdated)] as const;
    const replica = new Replica(options, applied, ...sets, state ? state.restored : restored);
    if (replica.epochId !== options.epochId) await replica.reset();
    return replica;
  }

  /**
   * Starts over: the log was rebuilt, and if a commit that this node has seen was lost, its number now belongs to another commit. The files
   * stay, because the tiles that come back refer to them.
   */
  private async reset(): Promise<void> {
    await this.setSlotsAside();
    await this.deleteRecordsExcept(new Set());
    this.epochId = this.options.epochId;
    await this.replicate(0, {});
  }

  /** The last commit that is applied. */
  get applied(): number {
    return this.seq;
  }

  /** True if the tiles of a slot are loaded. */
  hasSlot(slot: number): boolean {
    return this.slotSet.has(slot);
  }

  /** True if the folder has no tiles but those of `slots`, which are loaded. */
  hasOnly(slots: SlotSet): boolean {
    return slots.size === this.slotSet.size && this.outdated.size === 0;
  }

  /** The loaded slots. */
  get slots(): number[] {
    return [...this.slotSet];
  }

  /** The slots of which the folder may have tiles. */
  get storedSlots(): number[] {
    return [...union(this.slotSet, this.outdated)];
  }

  /** Bytes of the tiles of each loaded slot; 0 for other slots. */
  async bytesBySlot(): Promise<Float64Array> {
    const { index } = this.options.storage;
    const { changes } = index;
    if (this.cachedBytes?.changes !== changes)
      this.cachedBytes = { changes, bytes: bytesBySlot(index, this.options.prefixLengths) };
    const bytes = await this.cachedBytes!.bytes;
    return bytes.map((sum, slot) => (this.slotSet.has(slot) ? sum : 0));
  }

  /** Follows the log from now on. */
  start(): void {
    const { log, onFailure = () => {} } = this.options;
    this.watch = log.watch((signal) => this.catchUp(signal), onFailure);
  }

  async close(): Promise<void> {
    this.isClosed = true;
    this.watch?.close();
    for (const { seq, reject } of this.waiters.splice(0)) reject(replicaBehind(seq, this.seq));
    await this.queue.idle();
  }

  /** Applies everything that the log has. Skips reading the log if `signal` reports nothing new. */
  catchUp(signal?: WatchSignal): Promise<void> {
    return this.queue.run(async () => {
      if (!signal || !this.options.log.isKnown(signal, this.seq)) await this.readLog();
    });
  }

  /**
   * Resolves when a commit is applied. Throws TW_DHT_BEHIND after `timeoutMs` or if the replica closes, and the reason of `signal`
   * if that aborts.
   */
  async waitForCommit(seq: number, timeoutMs: number, signal?: AbortSignal): Promise<void> {
    if (this.seq >= seq) return;
    signal?.throwIfAborted();
    if (this.isClosed) throw replicaBehind(seq, this.seq);
    let waiter!: Waiter;
    const applied = new Promise<void>((resolve, reject) => {
      waiter = { seq, resolve, reject };
    });
    this.waiters.push(waiter);
    const timer = setTimeout(() => waiter.reject(replicaBehind(seq, this.seq)), timeoutMs);
    try {
      await (signal ? raceAbort(applied, signal) : applied);
    } finally {
      clearTimeout(timer);
      this.waiters = this.waiters.filter((other) => other !== waiter);
    }
  }

  /**
   * Waits for a commit that another node named, like `waitForCommit`, and reads the log: throws TW_DHT_NO_COMMIT if the log ends before
   * that commit, so that a wrong number does not cause a wait.
   */
  async waitForNamedCommit(seq: number, timeoutMs: number, signal?: AbortSignal): Promise<void> {
    if (this.seq >= seq) return;
    const missing = new AbortController();
    this.catchUp().then(
      () => missing.abort(commitNotInLog(seq, this.seq)),
      // The watch of `start` meets the same error, reports it and retries.
      () => undefined,
    );
    const signals = signal ? [signal, missing.signal] : [missing.signal];
    await this.waitForCommit(seq, timeoutMs, AbortSignal.any(signals));
  }

  /**
   * Resolves when all slots that were loaded before a checkpoint was are loaded again or dropped: a change that is built from their tiles
   * must wait. Throws TW_DHT_BEHIND after `timeoutMs` or if the replica closes.
   */
  async waitForSlots(timeoutMs: number): Promise<void> {
    for (const end = performance.now() + timeoutMs; this.setAside.size > 0; await sleep(POLL_INTERVAL_MS))
      if (this.isClosed || performance.now() > end) throw slotsOutdated(this.setAside.size);
  }

  /** Keeps a commit of this node until it is applied, so that its segment need not be read again. */
  cacheOwnCommit(segment: string, commit: Commit): void {
    this.ownCommits.set(segment, commit);
    if (this.ownCommits.size > MAX_OWN_COMMITS) this.ownCommits.delete(this.ownCommits.keys().next().value!);
  }

  /** Applies a commit of this node if it is the next one, without reading it from the log. */
  applyOwn(entry: CommittedEntry): Promise<void> {
    return this.queue.run(async () => {
      if (entry.seq === this.seq + 1) await this.apply(entry);
    });
  }

  /** Loads the tiles of more slots. Rejects with the reason of `signal` if it aborts; the slots are outdated then. */
  loadSlots(slots: Iterable<number>, signal?: AbortSignal): Promise<void> {
    return this.slotQueue.run(async () => {
      const { log, metrics } = this.options;
      for (;;) {
        const missing = new SlotSet([...slots].filter((slot) => !this.slotSet.has(slot)));
        if (missing.size === 0) return;
        const checkpoint = await log.readCheckpoint();
        // The checkpoint may be newer than the folder, which must then catch up.
        if (checkpoint && checkpoint.seq > this.seq) {
          await this.catchUp();
          continue;
        }
        const bytes = await this.loadCheckpointTiles(missing, checkpoint, signal);
        const laterBytes = await this.queue.run(() => this.completeSlots(missing, checkpoint?.seq ?? 0));
        metrics?.rebalanceBytes.inc(bytes + (laterBytes ?? 0));
        if (laterBytes !== undefined) metrics?.rebalanceSlots.inc(missing.size);
      }
    });
  }

  /** Drops the tiles of slots. */
  dropSlots(slots: Iterable<number>): Promise<void> {
    return this.slotQueue.run(async () => {
      const stored = union(this.slotSet, this.outdated);
      const dropped = new SlotSet([...slots].filter((slot) => stored.has(slot)));
      if (dropped.size === 0) return;
      await this.outdate(dropped);
      await this.removeTiles(await this.versionsIn(dropped));
      await this.queue.run(() => this.replicate(this.seq, {}, { outdated: without(this.outdated, dropped) }));
    });
  }

  /** Applies everything that the log has, within a step. */
  private async readLog(): Promise<void> {
    for (;;) {
      const page = await this.options.log.readSince(this.seq);
      if (page.kind === 'checkpoint') await this.load(page.checkpoint);
      else if ((await this.applyAll(page.entries)) && !page.more) return;
    }
  }

  /**
   * Returns false if it has loaded a checkpoint instead, because the segment of an entry is missing: garbage collection may overtake a
   * reader of the log, and older versions of the program leave entries in the log whose segments they remove.
   */
  private async applyAll(entries: CommittedEntry[]): Promise<boolean> {
    for (const entry of entries)
      try {
        await this.apply(entry);
      } catch (error) {
        const checkpoint = storeNotFound.is(error) ? await this.options.log.readCheckpoint() : undefined;
        if (!checkpoint || checkpoint.seq < entry.seq) throw error;
        await this.load(checkpoint);
        return false;
      }
    return true;
  }

  private async apply({ seq, segment, slots }: CommittedEntry): Promise<void> {
    const own = this.ownCommits.get(segment);
    const { objects } = this.options;
    const touched = SlotSet.fromText(slots);
    const wants = (slot: number) => this.slotSet.has(slot) && touched.has(slot);
    const commit = own ? this.ownedPart(own) : await readSegment(objects, segmentName(segment), wants);
    await this.replicate(seq, commit);
    this.ownCommits.delete(segment);
  }

  /** The part of a commit that concerns the loaded slots. */
  private ownedPart({ removed = [], added = [], ...others }: Commit): Commit {
    const slotOfCell = cellSlotLookup(this.options.prefixLengths);
    const isHere = (tile: TileVersion) => this.slotSet.has(slotOfCell(tile));
    return { ...others, removed: removed.filter(isHere), added: added.filter(isHere) };
  }

  private async replicate(
    applied: number,
    commit: Commit,
    { slots = this.slotSet, outdated = this.outdated } = {},
  ): Promise<void> {
    const { storage, cluster } = this.options;
    const { epochId } = this;
    const state: ReplicaRecord = {
      cluster,
      applied,
      slots: slots.toText(),
      ...(outdated.size > 0 && { outdated: outdated.toText() }),
      ...(epochId && { restored: epochId }),
    };
    await storage.replicate(state, commit, () => {
      this.seq = applied;
      this.slotSet = slots;
      this.outdated = outdated;
      if (this.setAside.size > 0)
        this.setAside = new SlotSet(
          [...this.setAside].filter((slot) => !slots.has(slot) && outdated.has(slot)),
        );
      const due = this.waiters.filter(({ seq }) => seq <= applied);
      this.waiters = this.waiters.filter(({ seq }) => seq > applied);
      for (const { resolve } of due) resolve();
    });
  }

  /** Brings the folder to the state of a later checkpoint, within a step, except for the tiles: all slots are outdated then. */
  private async load(checkpoint: StoredCheckpoint): Promise<void> {
    const { objects, onOutdated } = this.options;
    const setAside = union(this.setAside, this.slotSet);
    await this.setSlotsAside();
    this.setAside = setAside;
    const records = new Set<string>();
    for await (const edits of checkpointRecords(objects, await readManifest(objects, checkpoint))) {
      for (const edit of edits) records.add(recordName(edit));
      if (edits.length > 0) await this.replicate(this.seq, { edits });
    }
    await this.deleteRecordsExcept(records);
    await this.replicate(checkpoint.seq, {});
    onOutdated?.();
  }

  /** Makes all slots outdated, within a step. */
  private setSlotsAside(): Promise<void> {
    const outdated = union(this.slotSet, this.outdated);
    return this.replicate(this.seq, {}, { slots: new SlotSet(), outdated });
  }

  /** Deletes all records that commits edit except those with some names, within a step. */
  private async deleteRecordsExcept(names: ReadonlySet<string>): Promise<void> {
    const { catalogue } = this.options.storage;
    let edits: RecordEdit[] = [];
    for (const table of REPLICATED_TABLES)
      for await (const key of catalogue[table].keys()) {
        if (!names.has(recordName({ table, key }))) edits.push({ table, key, record: null });
        if (edits.length < PAGE_RECORDS) continue;
        await this.replicate(this.seq, { edits });
        edits = [];
      }
    if (edits.length > 0) await this.replicate(this.seq, { edits });
  }

  /** Makes some slots outdated, which need not be loaded. */
  private outdate(slots: SlotSet): Promise<void> {
    return this.queue.run(() =>
      this.replicate(
        this.seq,
        {},
        { slots: without(this.slotSet, slots), outdated: union(this.outdated, slots) },
      ),
    );
  }

  /** Replaces the tiles of some slots by those of a checkpoint. Returns the bytes of the added tiles. */
  private async loadCheckpointTiles(
    slots: SlotSet,
    checkpoint: StoredCheckpoint | undefined,
    signal: AbortSignal | undefined,
  ): Promise<number> {
    const { objects } = this.options;
    const stored = new SlotSet([...slots].filter((slot) => this.outdated.has(slot)));
    await this.outdate(slots);
    // A version of a tile never changes, so tiles that the folder has already need not be written.
    const superseded = await this.versionsIn(stored);
    let bytes = 0;
    for await (const tiles of checkpointTiles(objects, await readManifest(objects, checkpoint), slots)) {
      signal?.throwIfAborted();
      const added: TileRecord[] = [];
      const removed: TileVersion[] = [];
      for (const tile of tiles) {
        const former = superseded.get(tile.id);
        superseded.delete(tile.id);
        if (former?.version === tile.version) continue;
        if (former) removed.push(former);
        added.push(tile);
      }
      bytes += bytesOf(added);
      if (added.length > 0) await this.queue.run(() => this.replicate(this.seq, { removed, added }));
    }
    await this.removeTiles(superseded);
    return bytes;
  }

  /**
   * Applies the commits after the checkpoint `since` to slots with the tiles of that checkpoint, within a step, and counts them as loaded.
   * Returns the bytes of the added tiles; undefined if the log no longer has these commits.
   */
  private async completeSlots(slots: SlotSet, since: number): Promise<number | undefined> {
    const { log, objects, storage } = this.options;
    const state = new TileState();
    let last = since;
    for await (const entry of entriesSince(log, since)) {
      if (entry.seq > this.seq) break;
      const touched = SlotSet.fromText(entry.slots);
      const wants = (slot: number) => slots.has(slot) && touched.has(slot);
      if ([...touched].some(wants))
        state.apply(await readSegment(objects, segmentName(entry.segment), wants));
      last = entry.seq;
    }
    if (last !== this.seq) return undefined;
    const { removed, added } = state.toChanges();
    await this.replicate(
      this.seq,
      // Tiles that were added and removed since are not in the folder.
      { removed: removed.filter(({ id }) => storage.index.has(id)), added },
      { slots: union(this.slotSet, slots), outdated: without(this.outdated, slots) },
    );
    return bytesOf(added);
  }

  /** The versions of the tiles that the folder has in some slots, by id. */
  private async versionsIn(slots: SlotSet): Promise<Map<string, TileVersion>> {
    const versions = new Map<string, TileVersion>();
    if (slots.size === 0) return versions;
    const { storage, prefixLengths } = this.options;
    const ids: string[] = [];
    await storage.index.forEach(
      { where: slotTest(slots, prefixLengths) },
      (rows) => (row) => ids.push(rows.idOf(row)),
    );
    for (const some of slices(ids, PAGE_RECORDS))
      for (const { id, grid, geocode, version } of await storage.getTiles(some))
        versions.set(id, { id, grid, geocode, version });
    return versions;
  }

  /** Removes tiles of outdated slots. */
  private async removeTiles(versions: ReadonlyMap<string, TileVersion>): Promise<void> {
    const tiles = [...versions.values()];
    for (const removed of slices(tiles, PAGE_RECORDS))
      await this.queue.run(() => this.replicate(this.seq, { removed }));
  }
}

/** Bytes of the files of tiles. */
const bytesOf = (tiles: TileRecord[]) =>
  tiles.reduce((sum, { groups }) => groups.reduce((total, { bytes }) => total + bytes, sum), 0);

const union = (a: SlotSet, b: SlotSet) => new SlotSet([...a, ...b]);
const without = (a: SlotSet, b: SlotSet) => new SlotSet([...a].filter((slot) => !b.has(slot)));
