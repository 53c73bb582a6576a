/** Keeps the data folder of a node up to date with the commit log. */
import { raceAbort, SerialQueue } from '../async/index.js';
import type { Watch, WatchSignal } from '../coordination/index.js';
import type { ClusterMetrics } from '../metrics/index.js';
import {
  type Commit,
  type ObjectStore,
  REPLICATED_TABLES,
  type ReplicaRecord,
  type Storage,
  storeNotFound,
  type TileRecord,
  type TileVersion,
} from '../storage/index.js';
import { commitNotInLog, replicaBehind } from './errors.js';
import { entriesSince, partOf, readManifest, readParts, readSegment, segmentName } from './log/archive.js';
import type { CommitLog, CommittedEntry, RecordState, StoredCheckpoint } from './log/log.js';
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

/**
 * Invariants: Between two steps, the data folder contains exactly the tiles of `slots`, and all other records, as of commit `applied`;
 * steps run one after another. One batch changes the records and the number, so after a kill the replica resumes where it was. The index,
 * `applied` and `slots` change in one turn of the event loop. `applied` only grows, unless the log was rebuilt. The index can be read as
 * of recent earlier commits, but not from before the replica got other slots or loaded a checkpoint.
 */
export class Replica {
  private readonly queue = new SerialQueue();
  private waiters: Waiter[] = [];
  private isClosed = false;
  private watch: Watch | undefined;
  private readonly ownCommits = new Map<string, Commit>();
  private cachedBytes: { changes: number; bytes: Float64Array } | undefined;

  private constructor(
    private readonly options: ReplicaOptions,
    private seq: number,
    private slotSet: SlotSet,
  ) {}

  /** Opens the replica in a folder that has been in the cluster before, or in an empty one. */
  static async open(options: ReplicaOptions): Promise<Replica> {
    const state = await options.storage.replica();
    const slots = state && SlotSet.fromText(state.slots);
    const replica = new Replica(options, state?.applied ?? 0, slots ?? new SlotSet());
    if (state && state.restored !== options.epochId) await replica.reset();
    return replica;
  }

  /**
   * Starts over: the log was rebuilt, and if a commit that this node has seen was lost, its number now belongs to another commit. The files
   * stay, because the tiles that come back refer to them.
   */
  private async reset(): Promise<void> {
    await this.replaceContent(0, {}, new SlotSet());
  }

  /** The last commit that is applied. */
  get applied(): number {
    return this.seq;
  }

  /** True if the tiles of a slot are loaded. */
  hasSlot(slot: number): boolean {
    return this.slotSet.has(slot);
  }

  /** Number of loaded slots. */
  get slotCount(): number {
    return this.slotSet.size;
  }

  get slots(): number[] {
    return [...this.slotSet];
  }

  /** Bytes of the tiles of each loaded slot. */
  bytesBySlot(): Float64Array {
    const { index } = this.options.storage;
    const { changes } = index;
    if (this.cachedBytes?.changes !== changes)
      this.cachedBytes = { changes, bytes: bytesBySlot(index, this.options.prefixLengths) };
    return this.cachedBytes!.bytes;
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

  /** Loads the tiles of more slots. */
  loadSlots(slots: Iterable<number>): Promise<void> {
    return this.queue.run(async () => {
      const wanted = new SlotSet([...slots].filter((slot) => !this.slotSet.has(slot)));
      if (wanted.size === 0) return;
      const state = await this.stateOf(wanted);
      const { added } = state.toCommit();
      await this.replicate(this.seq, { added: added! }, new SlotSet([...this.slotSet, ...wanted]));
      this.options.metrics?.rebalanceSlots.inc(wanted.size);
      this.options.metrics?.rebalanceBytes.inc(added!.reduce((sum, tile) => sum + bytesOf(tile), 0));
    });
  }

  /** Drops the tiles of slots. */
  dropSlots(slots: Iterable<number>): Promise<void> {
    return this.queue.run(async () => {
      const dropped = new SlotSet([...slots].filter((slot) => this.slotSet.has(slot)));
      if (dropped.size === 0) return;
      const kept = new SlotSet([...this.slotSet].filter((slot) => !dropped.has(slot)));
      await this.replicate(this.seq, { removed: await this.tilesOf(dropped) }, kept);
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

  private async replicate(applied: number, commit: Commit, slots = this.slotSet): Promise<void> {
    const { storage, cluster, epochId } = this.options;
    const state: ReplicaRecord = {
      cluster,
      applied,
      slots: slots.toText(),
      ...(epochId && { restored: epochId }),
    };
    await storage.replicate(state, commit, () => {
      this.seq = applied;
      this.slotSet = slots;
      const due = this.waiters.filter(({ seq }) => seq <= applied);
      this.waiters = this.waiters.filter(({ seq }) => seq > applied);
      for (const { resolve } of due) resolve();
    });
  }

  /** The content of some slots as of the last applied commit. */
  private async stateOf(wanted: SlotSet): Promise<RecordState> {
    const { log, objects } = this.options;
    const wants = (slot: number) => wanted.has(slot);
    for (;;) {
      const checkpoint = await log.readCheckpoint();
      // The checkpoint may be newer than the folder, which must then catch up.
      if (checkpoint && checkpoint.seq > this.seq) await this.readLog();
      const manifest = await readManifest(objects, checkpoint);
      const parts = new Set([...wanted].map(partOf));
      const state = await readParts(objects, manifest, wants, parts);
      let last = checkpoint?.seq ?? 0;
      for await (const entry of entriesSince(log, last)) {
        if (entry.seq > this.seq) break;
        const touched = SlotSet.fromText(entry.slots);
        const isOf = (slot: number) => wants(slot) && touched.has(slot);
        if ([...touched].some(wants))
          state.apply(await readSegment(objects, segmentName(entry.segment), isOf));
        last = entry.seq;
      }
      // Otherwise the log was trimmed while it was read.
      if (last === this.seq) return state;
    }
  }

  /** Brings the folder to the state of a later checkpoint. */
  private async load(checkpoint: StoredCheckpoint): Promise<void> {
    const { objects } = this.options;
    const manifest = await readManifest(objects, checkpoint);
    const state = await readParts(objects, manifest, (slot) => this.slotSet.has(slot));
    await this.replaceContent(checkpoint.seq, state.toCommit());
  }

  /** Brings the folder to the state that a commit makes in an empty one. */
  private async replaceContent(
    seq: number,
    { added: wanted = [], edits = [] }: Commit,
    slots = this.slotSet,
  ): Promise<void> {
    const { storage } = this.options;
    // A version of a tile never changes, so tiles that are loaded already need not be written.
    const nameOf = ({ id, version }: TileVersion) => `${id} ${version}`;
    const known = await this.tilesOf(this.slotSet);
    const here = new Set(known.map(nameOf));
    const kept = new Set(wanted.map(nameOf));
    const removed = known.filter((tile) => !kept.has(nameOf(tile)));
    const added = wanted.filter((tile) => !here.has(nameOf(tile)));
    const edited = new Set(edits.map(({ table, key }) => `${table}/${key}`));
    for (const table of REPLICATED_TABLES)
      for await (const key of storage.catalogue[table].keys())
        if (!edited.has(`${table}/${key}`)) edits.push({ table, key, record: null });
    await this.replicate(seq, { removed, added, edits }, slots);
  }

  /** The loaded tiles of some slots. */
  private async tilesOf(slots: SlotSet) {
    const { storage, prefixLengths } = this.options;
    const ids: string[] = [];
    const { index } = storage;
    index.forEach({ where: slotTest(slots, prefixLengths) }, (rows) => (row) => ids.push(rows.idOf(row)));
    return storage.getTiles(ids);
  }
}

const bytesOf = ({ groups }: TileRecord) => groups.reduce((sum, { bytes }) => sum + bytes, 0);
