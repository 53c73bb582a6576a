/**
 * Garbage collection in the object store, and the background work that one node at a time does for the cluster: this collection, and
 * checkpoints of the log.
 */
import { randomUUID } from 'node:crypto';
import { PeriodicTask, toArray } from '../async/index.js';
import type { CoordinationStore } from '../coordination/index.js';
import {
  modelFolder,
  type ObjectInfo,
  type ObjectStore,
  type RecordEdit,
  supersededFolders,
  tileFolder,
  versionOfFolder,
  versionsOf,
} from '../storage/index.js';
import { lockHeld, logDamaged, otherCluster } from './errors.js';
import { archivedEntryName, listArchived, readArchived } from './log/archive.js';
import {
  checkpointRecords,
  checkpointTiles,
  MANIFESTS_FOLDER,
  type Manifest,
  PARTS_FOLDER,
  readManifest,
  segmentsOf,
  seqOfObject,
  writeLogCheckpoint,
} from './log/checkpoint.js';
import { acquireLock, listLocks, pruneCommittedLocks } from './log/fenced-lock.js';
import { CHECKPOINT_COMMITS, type CommitLog, type CommittedEntry } from './log/log.js';
import { readSegment, segmentName } from './log/segment.js';
import { readIdentity, requireLogCoversStore } from './recovery.js';
import type { Replica } from './replica.js';
import { type PrefixLengths, SlotSet, slotOfCell } from './slots.js';

const DAY_MS = 86_400_000;
const HOUR_MS = 3_600_000;
const GC_MARKS_FOLDER = 'catalogue/sweeps/';
const SEGMENTS_FOLDER = segmentName('');
/** Objects that are checked together. */
const PAGE_OBJECTS = 5000;
/** Locks under which names do not begin with a fence: those of models and of imported folders. */
const UNFENCED_LOCKS = /^(?!scene\/|collection\/|checkpoint$|sweep$)/;

export interface ObjectGcContext {
  /** Id of the cluster. */
  cluster: string;
  coordination: CoordinationStore;
  log: CommitLog;
  objects: ObjectStore;
  prefixLengths: PrefixLengths;
  /** How long an earlier state can still be read, ms; default: a day. */
  keepMs?: number;
  /** Does nothing if another collection began less than this ago, ms; default: an hour. */
  minIntervalMs?: number;
  signal?: AbortSignal;
}

export interface ObjectGcReport {
  /** Number of objects that were listed. */
  listed: number;
  removed: number;
  bytes: number;
}

/**
 * Collects garbage once; returns undefined if the last collection was recent. The next collection repeats an interrupted one. Throws
 * TW_DHT_LOG_BEHIND_STORE, TW_DHT_OTHER_CLUSTER, and any error that hides which objects are in use; nothing more is removed then.
 */
export async function collectObjectGarbage(context: ObjectGcContext): Promise<ObjectGcReport | undefined> {
  const { cluster, log, objects } = context;
  const identity = await readIdentity(objects);
  if (identity?.id !== cluster) throw otherCluster(identity?.id ?? 'none', cluster);
  await requireLogCoversStore(log, objects);
  const now = await markStart(context);
  return now === undefined ? undefined : new ObjectGc(context, now).run();
}

/** Records the start of a collection. Returns the time of the store's clock, or undefined if the last collection was recent. */
async function markStart({ objects, minIntervalMs = HOUR_MS }: ObjectGcContext): Promise<number | undefined> {
  const former = await toArray(objects.list(GC_MARKS_FOLDER));
  const name = `${GC_MARKS_FOLDER}${randomUUID()}`;
  await objects.put(name, Buffer.alloc(0));
  const now = (await objects.head(name))!.modified;
  const isEarly = former.some(({ modified }) => modified > now - minIntervalMs);
  await objects.delete(isEarly ? [name] : former.map((mark) => mark.name));
  return isEarly ? undefined : now;
}

/** The writes in progress: the fences of held locks, and whether any of them may write names without a fence. */
interface Activity {
  fences: Set<number>;
  hasUnfencedNames: boolean;
}

/**
 * One collection in the object store. It keeps:
 *
 * - All objects that any state of the cluster since `base` refers to, where `base` is the newest checkpoint that is older than a day. So a
 *   reader of a state of less than a day ago finds its files, parts and segments. If a store was copied without its times, no
 *   checkpoint is old; `base` is then the oldest state from which all later commits are still in the store.
 * - All objects that are written under held locks. Names of segments begin with the fence of the lock, versions of tiles with its fence or
 *   `first`, and a lock exists before its first object. So an object that was listed, and has neither a lock nor a record when these are
 *   read after the listing, can never be referred to.
 *
 * Only times of the object store are compared: the time of the manifest of `base`, and that of an object that was written just now.
 */
class ObjectGc {
  private readonly report: ObjectGcReport = { listed: 0, removed: 0, bytes: 0 };
  /** Number of the last commit in `manifest`. */
  private seq = 0;
  private manifest!: Manifest;
  /** Number of the last commit in `base`; 0 if `base` is the empty store. */
  private base = 0;
  /** The last commit that was read. */
  private last = 0;
  /** Folders that commits after `base` have removed, or commits after `manifest` have added. */
  private readonly folders = new Set<string>();
  /** Segments of the commits after `base`. */
  private readonly segments = new Set<string>();

  constructor(
    private readonly context: ObjectGcContext,
    private readonly now: number,
  ) {}

  async run(): Promise<ObjectGcReport> {
    const { log, objects, keepMs = DAY_MS } = this.context;
    await writeLogCheckpoint({ log, objects });
    const checkpoint = await log.readCheckpoint();
    this.seq = checkpoint?.seq ?? 0;
    this.manifest = await readManifest(objects, checkpoint);
    const manifests = await toArray(objects.list(MANIFESTS_FOLDER));
    const copies = await listArchived(objects);
    const old = manifests
      .filter(({ modified }) => modified <= this.now - keepMs)
      .map(({ name }) => seqOfObject(name));
    this.base =
      old.filter((seq) => seq <= this.seq).sort((a, b) => b - a)[0] ??
      oldestReplayableSeq(manifests, copies, this.seq);
    await this.readRecent();

    // No reader may follow the log through entries whose segments are about to be removed.
    await log.trim(this.base);
    await this.remove(manifests.filter(({ name }) => seqOfObject(name) < this.base));
    const covered = copies.filter((seq) => seq <= this.base);
    await this.remove(covered.map((seq) => ({ name: archivedEntryName(seq), bytes: 0 })));
    await this.removeParts();
    await this.removeUnreferenced(SEGMENTS_FOLDER, async (names, { fences }) => {
      const ids = names.map((name) => name.slice(SEGMENTS_FOLDER.length));
      return new Set(
        ids.filter((id) => this.segments.has(id) || fences.has(Number.parseInt(id, 10))).map(segmentName),
      );
    });
    await this.removeUnreferenced('tiles/', (names, work) =>
      this.referencedFiles(names, work, (some) => this.tilesOf(some)),
    );
    const models = await this.models();
    await this.removeUnreferenced('models/', (names, work) =>
      this.referencedFiles(names, work, async () => models),
    );
    return this.report;
  }

  /** Reads the commits after `base` up to the last one in `manifest`. */
  private async readRecent(): Promise<void> {
    const { objects } = this.context;
    for (const { segment } of await readArchived(objects, this.base, this.seq)) {
      this.segments.add(segment);
      const commit = await readSegment(objects, segmentName(segment), () => true);
      for (const folder of supersededFolders(commit)) this.folders.add(folder);
    }
    this.last = this.seq;
  }

  /** Reads the held locks, and then the commits up to now. */
  private async readActivity(): Promise<Activity> {
    const { coordination, log, objects, signal } = this.context;
    signal?.throwIfAborted();
    const heldLocks = (await listLocks(coordination, '')).filter(({ done }) => done === undefined);
    for (let more = true; more; ) {
      const page = await log.readSince(this.last);
      if (page.kind === 'checkpoint') {
        await this.addEntries(await readArchived(objects, this.last, page.checkpoint.seq));
      } else {
        await this.addEntries(page.entries);
        more = page.more;
      }
    }
    return {
      fences: new Set(heldLocks.flatMap(({ fence, first }) => [fence, first])),
      hasUnfencedNames: heldLocks.some(({ name }) => UNFENCED_LOCKS.test(name)),
    };
  }

  private async addEntries(entries: CommittedEntry[]): Promise<void> {
    for (const { seq, segment } of entries) {
      if (seq !== this.last + 1) throw logDamaged(`entry ${this.last + 1} is missing`);
      const commit = await readSegment(this.context.objects, segmentName(segment), () => true);
      this.segments.add(segment);
      for (const folder of supersededFolders(commit)) this.folders.add(folder);
      for (const tile of commit.added ?? []) this.folders.add(tileFolder(tile));
      for (const edit of commit.edits ?? [])
        for (const folder of modelFolders(edit)) this.folders.add(folder);
      this.last = seq;
    }
  }

  /**
   * Removes the segments of checkpoints that no manifest since `base` names. Segments after the checkpoint may belong to a checkpoint that
   * is being written; one that is not after the checkpoint can never belong to a later one.
   */
  private async removeParts(): Promise<void> {
    const { objects, log } = this.context;
    const parts = await toArray(objects.list(PARTS_FOLDER));
    const named = new Set<string>();
    for (const { name } of await toArray(objects.list(MANIFESTS_FOLDER)))
      for (const segment of segmentsOf(await readManifest(objects, { manifest: name }))) named.add(segment);
    const seq = (await log.readCheckpoint())?.seq ?? 0;
    await this.remove(parts.filter(({ name }) => seqOfObject(name) <= seq && !named.has(name)));
  }

  /** Removes the objects below a prefix, page by page, except those that `neededOf`, which is called after the listing, returns. */
  private async removeUnreferenced(
    prefix: string,
    neededOf: (names: string[], work: Activity) => Promise<Set<string>>,
  ): Promise<void> {
    const { objects, signal } = this.context;
    let page: ObjectInfo[] = [];
    const finish = async () => {
      const needed = await neededOf(
        page.map(({ name }) => name),
        await this.readActivity(),
      );
      await this.remove(page.filter(({ name }) => !needed.has(name)));
      page = [];
    };
    for await (const info of objects.list(prefix, { signal })) {
      this.report.listed++;
      if (page.push(info) === PAGE_OBJECTS) await finish();
    }
    if (page.length > 0) await finish();
  }

  /** The names that belong to needed versions, or that are not files of a version. */
  private async referencedFiles(
    names: string[],
    { fences, hasUnfencedNames }: Activity,
    recorded: (folders: string[]) => Promise<Set<string>>,
  ): Promise<Set<string>> {
    const isAtWork = (folder: string) => {
      const fence = fenceOf(versionOfFolder(folder));
      return fence === undefined ? hasUnfencedNames : fences.has(fence);
    };
    const doubtful = new Set<string>();
    const needed = new Set<string>();
    for (const name of names) {
      const folder = name.slice(0, name.lastIndexOf('/'));
      if (!VERSION_FILE.test(name) || this.folders.has(folder) || isAtWork(folder)) needed.add(name);
      else doubtful.add(folder);
    }
    const recordedFolders = doubtful.size > 0 ? await recorded([...doubtful]) : doubtful;
    for (const name of names) if (recordedFolders.has(name.slice(0, name.lastIndexOf('/')))) needed.add(name);
    return needed;
  }

  /** The folders of all tiles that `manifest` has in the slots of some tile folders. */
  private async tilesOf(folders: string[]): Promise<Set<string>> {
    const { objects, prefixLengths } = this.context;
    const slots = new SlotSet();
    for (const folder of folders) {
      const [, grid, , geocode] = folder.split('/') as [string, 'geohash' | 'quadtile', string, string];
      slots.add(slotOfCell({ grid, geocode }, prefixLengths));
    }
    const found = new Set<string>();
    for await (const tiles of checkpointTiles(objects, this.manifest, slots))
      for (const tile of tiles) found.add(tileFolder(tile));
    return found;
  }

  private async models(): Promise<Set<string>> {
    const found = new Set<string>();
    for await (const edits of checkpointRecords(this.context.objects, this.manifest))
      for (const edit of edits) for (const folder of modelFolders(edit)) found.add(folder);
    return found;
  }

  private async remove(objects: Pick<ObjectInfo, 'name' | 'bytes'>[]): Promise<void> {
    this.context.signal?.throwIfAborted();
    await this.context.objects.delete(objects.map(({ name }) => name));
    this.report.removed += objects.length;
    for (const { bytes } of objects) this.report.bytes += bytes;
  }
}

/** The first checkpoint, or 0 for the empty store, from which the archive has every entry up to commit `last`. */
function oldestReplayableSeq(manifests: ObjectInfo[], copies: number[], last: number): number {
  const copiedSeqs = new Set(copies);
  let first = last;
  while (first > 0 && copiedSeqs.has(first)) first--;
  if (first === 0) return 0;
  const later = manifests.map(({ name }) => seqOfObject(name)).filter((seq) => seq >= first && seq <= last);
  return Math.min(last, ...later);
}

/** The folders of the versions that a model has after an edit. */
function modelFolders({ table, record }: RecordEdit): string[] {
  return table === 'models' && record ? versionsOf(record).map(modelFolder) : [];
}

const VERSION_FILE =
  /^(tiles\/(geohash|quadtile)(\/[^/]+){2}\/[^/]+\.[0-9a-z]+|models(\/[^/]+){4}\/[0-9a-z]+)\/[^/]+$/;

/** The fence that a version begins with; undefined for versions that were made without a lock. */
function fenceOf(version: string): number | undefined {
  return /^[0-9a-z]{11}[0-9a-f]{6}$/.test(version) ? Number.parseInt(version.slice(0, 11), 36) : undefined;
}

/** A checkpoint with at least one new commit is written after this time. */
const MAX_CHECKPOINT_AGE_MS = 10 * 60_000;
const CHECKPOINT_POLL_MS = 10_000;
/** Poll interval if `checkpointAfter` is set. */
const CHECKPOINT_SHORT_POLL_MS = 100;

interface MaintenanceOptions extends Omit<ObjectGcContext, 'keepMs' | 'minIntervalMs'> {
  /** This node, which locks the work. */
  self: string;
  replica: Replica;
  /** Number of commits between two checkpoints. */
  checkpointAfter?: number | undefined;
  signal: AbortSignal;
  /** Called with every error; failed work is retried. */
  onFailure: (error: unknown) => void;
}

/** Background work that one node at a time does for the cluster: checkpoints of the log, and garbage collection in the object store. */
export class Maintenance {
  private tasks: PeriodicTask[] = [];
  /** The last checkpoint that this node has seen, and when it first saw it. */
  private checkpoint = { seq: 0, seen: performance.now() };

  constructor(private readonly options: MaintenanceOptions) {}

  start(): void {
    const { checkpointAfter, signal, onFailure } = this.options;
    const pollMs = checkpointAfter === undefined ? CHECKPOINT_POLL_MS : CHECKPOINT_SHORT_POLL_MS;
    this.tasks = [
      new PeriodicTask(() => this.checkpointIfDue(), pollMs, onFailure),
      new PeriodicTask(
        () => this.collectGarbage(),
        HOUR_MS,
        (error) => {
          if (!signal.aborted) onFailure(error);
        },
      ),
    ];
  }

  async close(): Promise<void> {
    await Promise.all(this.tasks.map((one) => one.close()));
  }

  /** Removes garbage from the object store, unless another node is doing so or has done so recently. */
  collectGarbage(
    options: Pick<ObjectGcContext, 'keepMs' | 'minIntervalMs'> = {},
  ): Promise<ObjectGcReport | undefined> {
    const { cluster, coordination, log, objects, prefixLengths } = this.options;
    return this.runExclusively('sweep', (lost) => {
      const signal = AbortSignal.any([lost, this.options.signal]);
      return collectObjectGarbage({ cluster, coordination, log, objects, prefixLengths, signal, ...options });
    });
  }

  /** Writes a checkpoint if one is due and no other node is writing one. */
  private async checkpointIfDue(): Promise<void> {
    const { log, objects, coordination, replica } = this.options;
    const { checkpointAfter = CHECKPOINT_COMMITS } = this.options;
    const seq = (await log.readCheckpoint())?.seq ?? 0;
    const now = performance.now();
    if (seq !== this.checkpoint.seq) this.checkpoint = { seq, seen: now };
    const commits = replica.applied - seq;
    const isOld = commits > 0 && now - this.checkpoint.seen >= MAX_CHECKPOINT_AGE_MS;
    if (commits < checkpointAfter && !isOld) return;
    await this.runExclusively('checkpoint', async () => {
      await pruneCommittedLocks(coordination, await writeLogCheckpoint({ log, objects }));
    });
  }

  /** Does the work under a lock; returns undefined if another node is doing it. */
  private async runExclusively<T>(
    name: string,
    work: (lost: AbortSignal) => Promise<T>,
  ): Promise<T | undefined> {
    const lock = await acquireLock(this.options.coordination, name, this.options.self).catch((error) => {
      if (lockHeld.is(error)) return undefined;
      throw error;
    });
    if (!lock) return undefined;
    try {
      return await work(lock.lost);
    } finally {
      await lock.release();
    }
  }
}
