/** The commit log in the coordination store: its entries, its head and its checkpoint. */

import { backOff, SerialQueue } from '../../async/index.js';
import {
  type CoordinationStore,
  coordinationUnavailable,
  documentDamaged,
  firstKeyValue,
  type KeyValue,
  type Operation,
  outcomeUnknown,
  parseJsonValue,
  type RangeResult,
  readKey,
  retryUntilAnswered,
  type Transaction,
  type Watch,
  type WatchSignal,
  watchLoop,
} from '../../coordination/index.js';
import { messageOf } from '../../errors.js';
import { collectionConflict, entryTooLarge, lockLost, logDamaged } from '../errors.js';
import { committedMarker, type FencedLock, lockKey, parseLock } from './fenced-lock.js';

/** The content of a log entry. */
export interface LogEntry {
  /** Name of the object with the records of the commit. */
  segment: string;
  /** The slots that the commit touches, as text; the log does not interpret it. */
  slots: string;
}

export interface CommittedEntry extends LogEntry {
  seq: number;
  /** Name and fence of the lock that the commit was made under. */
  claim: string;
  fence: number;
}

interface Checkpoint {
  /** Number of the last commit in it. */
  seq: number;
  /** Name of the object that lists its parts. */
  manifest: string;
}

/** A checkpoint with the revision of its key. */
export interface StoredCheckpoint extends Checkpoint {
  revision: number;
}

/** The answer to `readSince`: the next entries, or the checkpoint to load if these entries have been deleted. */
type LogPage =
  | { kind: 'entries'; head: number; entries: CommittedEntry[]; more: boolean }
  | { kind: 'checkpoint'; head: number; checkpoint: StoredCheckpoint };

/** The keys that the state from which a commit was built relies on. */
export interface CommitConditions {
  /** Keys that must have these revisions when the entry is appended; 0: the key must not exist. */
  compare: KeyRevision[];
  /** Keys that the same transaction writes, so that commits that compare them and were built from an earlier state fail. */
  touch?: string[];
}

export interface KeyRevision {
  key: string;
  modRevision: number;
}

const NO_CONDITIONS: CommitConditions = { compare: [] };

/** The last number of the log, and the revision of the key that holds it. */
interface Head {
  seq: number;
  revision: number;
}

const HEAD_KEY = 'log/head';
const CHECKPOINT_KEY = 'log/checkpoint';
/** Numbers are padded so that keys sort like numbers. */
const entryKey = (seq: number) => `log/${`${seq}`.padStart(16, '0')}`;
/** Sorts after the keys of all entries. */
const ENTRIES_END = 'log/:';
const MAX_ENTRY_BYTES = 4096;
const READ_LIMIT = 200;
const TIMEOUT_MS = 30_000;
/** Number of commits between two checkpoints, and number of entries before a checkpoint that are kept. */
export const CHECKPOINT_COMMITS = 1000;
/** For how long a head that was read proves that the store answers. */
const HEAD_FRESH_MS = 1000;

/**
 * The total order of all commits of a cluster.
 *
 * Invariants:
 * - Entries are numbered from 1 without a gap, and `log/head` contains the last number.
 * - Up to `keptEntries` entries before the checkpoint stay in the log, so that a reader a few commits behind reads them instead of the
 *   complete checkpoint.
 * - One transaction writes an entry, the head and the mark on the lock; it compares head, lock and the
 *   keys that the commit relies on. It changes the key of the
 *   lock, so a lock commits once, however often the transaction is retried.
 */
export class CommitLog {
  /** The heads of commits with an unknown outcome. A retry with the same head finds the outcome. */
  private readonly uncertain = new WeakMap<FencedLock, Head>();
  /** Commits of this node run one after another; otherwise they would only conflict with each other. */
  private readonly queue = new SerialQueue();
  /** The newest head that was read or written by this node, and when. */
  private lastHead: (Head & { at: number }) | undefined;

  constructor(
    private readonly store: CoordinationStore,
    private readonly keptEntries = CHECKPOINT_COMMITS,
  ) {}

  /**
   * Appends an entry and returns its number. Throws TW_DHT_COLLECTION_CHANGED if a condition is not met. Nothing is committed after
   * TW_DHT_CLAIM_LOST, TW_DHT_COLLECTION_CHANGED, TW_DHT_COORDINATION_UNAVAILABLE and TW_DHT_ENTRY_TOO_LARGE. After
   * TW_DHT_OUTCOME_UNKNOWN the commit may still be made; a call with the same lock and entry returns its number, and commits if it was
   * not made. A lock that has committed another entry is lost.
   */
  commit(
    lock: FencedLock,
    entry: LogEntry,
    conditions = NO_CONDITIONS,
    timeoutMs = TIMEOUT_MS,
  ): Promise<number> {
    const deadline = performance.now() + timeoutMs;
    return this.queue.run(() => this.commitUntil(deadline, { lock, entry, conditions }));
  }

  private async commitUntil(deadline: number, commit: PendingCommit): Promise<number> {
    const { lock } = commit;
    const left = () => Math.max(0, deadline - performance.now());
    try {
      for (let tries = 0; ; tries++) {
        const head =
          this.uncertain.get(lock) ??
          (tries === 0 ? this.freshHead() : undefined) ??
          (await this.readHead(left()));
        const seq = await this.tryCommit(commit, head, left());
        if (seq !== undefined) {
          lock.markCommitted();
          return seq;
        }
        if (left() === 0) throw coordinationUnavailable('a commit', 'the log', 'others came first each time');
        await backOff(tries);
      }
    } catch (error) {
      if (!coordinationUnavailable.is(error)) throw error;
      // Even if this call sent nothing, an earlier one may have sent the commit.
      const kind = this.uncertain.has(lock) ? outcomeUnknown : coordinationUnavailable;
      throw kind.because(
        error,
        `the commit of ${lock.name}`,
        'the coordination store',
        messageOf(error.cause ?? error),
      );
    }
  }

  /** Returns the number of the commit, or undefined if another commit came first. */
  private async tryCommit(commit: PendingCommit, head: Head, timeoutMs: number): Promise<number | undefined> {
    const { lock } = commit;
    let uncertain = this.uncertain.has(lock);
    try {
      const { succeeded, gets, revision } = await retryUntilAnswered(timeoutMs, (left, isUncertain) => {
        uncertain ||= isUncertain;
        return this.store.transact(transactionOf(commit, head), { timeoutMs: left });
      });
      this.uncertain.delete(lock);
      if (!succeeded) return earlierOutcome(commit, head, gets, uncertain);
      this.onHead({ seq: head.seq + 1, revision });
      return head.seq + 1;
    } catch (error) {
      if (outcomeUnknown.is(error)) this.uncertain.set(lock, head);
      throw error;
    }
  }

  /** The commits after commit `seq`, at most `limit` entries. TW_DHT_LOG_DAMAGED. */
  async readSince(seq: number, limit = READ_LIMIT): Promise<LogPage> {
    const { gets } = await this.store.transact({
      success: [
        { op: 'get', key: HEAD_KEY },
        { op: 'get', key: entryKey(seq + 1), end: ENTRIES_END, limit },
      ],
    });
    const newest = headOf(firstKeyValue(gets[0]!));
    this.onHead(newest);
    const { seq: head } = newest;
    if (head < seq) throw logDamaged(`it ends with commit ${head}, but this node has seen commit ${seq}`);
    const { kvs, more } = gets[1]!;
    const entries = kvs.map(decodeEntry);
    if (head > seq && entries[0]?.seq !== seq + 1) {
      // Entries are deleted by the transaction that moves the checkpoint.
      const checkpoint = await this.readCheckpoint();
      if (checkpoint && checkpoint.seq > seq) return { kind: 'checkpoint', head, checkpoint };
    }
    const last = more ? seq + entries.length : head;
    for (let n = seq + 1; n <= last; n++)
      if (entries[n - seq - 1]?.seq !== n) throw logDamaged(`entry ${n} of ${head} is missing`);
    return { kind: 'entries', head, entries, more };
  }

  async readCheckpoint(): Promise<StoredCheckpoint | undefined> {
    const kv = await readKey(this.store, CHECKPOINT_KEY);
    return kv && decodeCheckpoint(kv);
  }

  /** The numbers of the last commit and of the last commit in the checkpoint. */
  async bounds(timeoutMs = TIMEOUT_MS): Promise<{ head: number; checkpoint: number }> {
    const { gets } = await this.store.read([{ key: HEAD_KEY }, { key: CHECKPOINT_KEY }], { timeoutMs });
    const checkpoint = firstKeyValue(gets[1]!);
    return {
      head: headOf(firstKeyValue(gets[0]!)).seq,
      checkpoint: checkpoint ? decodeCheckpoint(checkpoint).seq : 0,
    };
  }

  /**
   * Replaces the checkpoint `expected` (undefined if none exists), and deletes the entries more than `keptEntries` before the new one.
   * Returns false if another node has moved the checkpoint.
   */
  async moveCheckpoint(expected: StoredCheckpoint | undefined, next: Checkpoint): Promise<boolean> {
    const { seq, manifest } = next;
    if (seq <= (expected?.seq ?? 0)) return false;
    const value = JSON.stringify({ seq, manifest } satisfies Checkpoint);
    const { succeeded, gets } = await retryUntilAnswered(TIMEOUT_MS, (left) =>
      this.store.transact(
        {
          compare: [{ key: CHECKPOINT_KEY, modRevision: expected?.revision ?? 0 }],
          success: [
            { op: 'put', key: CHECKPOINT_KEY, value },
            { op: 'delete', key: entryKey(0), end: entryKey(Math.max(0, seq - this.keptEntries) + 1) },
          ],
          failure: [{ op: 'get', key: CHECKPOINT_KEY }],
        },
        { timeoutMs: left },
      ),
    );
    // If the key already has this value, an attempt whose answer was lost has put it.
    return succeeded || firstKeyValue(gets[0]!)?.value === value;
  }

  /** Deletes the entries up to commit `seq`, which the checkpoint holds. Readers that are further behind load the checkpoint. */
  async trim(seq: number): Promise<void> {
    await this.store.transact({
      success: [{ op: 'delete', key: entryKey(0), end: entryKey(seq + 1) }],
    });
  }

  /** Calls `read` at the start and after commits, one call at a time: see `watchLoop`. */
  watch(read: (signal: WatchSignal) => Promise<void>, onError: (error: unknown) => void): Watch {
    return watchLoop(this.store, { key: HEAD_KEY }, read, onError);
  }

  private async readHead(timeoutMs: number): Promise<Head> {
    const head = headOf(await readKey(this.store, HEAD_KEY, { timeoutMs }));
    this.onHead(head);
    return head;
  }

  private onHead(head: Head): void {
    this.lastHead = { ...head, at: performance.now() };
  }

  /**
   * If the store has just answered, a commit need not read the head first. Otherwise reading the head shows whether the store answers,
   * before anything is sent whose outcome could become unknown.
   */
  private freshHead(): Head | undefined {
    return this.lastHead && performance.now() - this.lastHead.at < HEAD_FRESH_MS ? this.lastHead : undefined;
  }

  /** True if a signal reports nothing new to a reader that has applied commit `applied`. */
  isKnown({ reason, revision }: WatchSignal, applied: number): boolean {
    return (
      reason === 'change' &&
      this.lastHead !== undefined &&
      revision <= this.lastHead.revision &&
      this.lastHead.seq <= applied
    );
  }
}

interface PendingCommit {
  lock: FencedLock;
  entry: LogEntry;
  conditions: CommitConditions;
}

function transactionOf(
  { lock, entry, conditions: { compare, touch = [] } }: PendingCommit,
  head: Head,
): Transaction {
  const seq = head.seq + 1;
  const key = lockKey(lock.name);
  return {
    compare: [{ key: HEAD_KEY, modRevision: head.revision }, { key, modRevision: lock.fence }, ...compare],
    success: [
      { op: 'put', key: HEAD_KEY, value: `${seq}` },
      { op: 'put', key: entryKey(seq), value: entryValue(lock, entry, seq) },
      { op: 'put', key, value: committedMarker(lock, seq, entry.segment) },
      ...touch.map((touched): Operation => ({ op: 'put', key: touched, value: `${seq}` })),
    ],
    failure: [
      { op: 'get', key },
      { op: 'get', key: entryKey(seq) },
      { op: 'get', key: CHECKPOINT_KEY },
      ...compare.map(({ key }): Operation => ({ op: 'get', key })),
    ],
  };
}

/**
 * After an attempt that was refused: the number that an earlier attempt with an unknown outcome has got, or undefined if only the head
 * has moved. TW_DHT_CLAIM_LOST, TW_DHT_COLLECTION_CHANGED.
 */
function earlierOutcome(
  { lock, entry: { segment }, conditions: { compare } }: PendingCommit,
  head: Head,
  gets: RangeResult[],
  uncertain: boolean,
): number | undefined {
  const [lockKv, entryKv, checkpointKv, ...compared] = gets.map(firstKeyValue);
  const state = lockKv && parseLock(lockKv);
  if (state?.fence === lock.fence) {
    if (state.done !== undefined && state.segment === segment) return state.done;
    if (state.done !== undefined) throw lockLost(lock.name);
    const changed = compare.find(({ modRevision }, i) => (compared[i]?.modRevision ?? 0) !== modRevision);
    if (changed) throw collectionConflict(changed.key);
    return undefined;
  }
  // The mark of a commit may have been replaced by the next lock; its entry exists for longer.
  const entry = entryKv && decodeEntry(entryKv);
  if (entry?.fence === lock.fence && entry.segment === segment) return entry.seq;
  const isDeleted = !entry && checkpointKv !== undefined && decodeCheckpoint(checkpointKv).seq > head.seq;
  if (uncertain && isDeleted)
    throw outcomeUnknown(`the commit of ${lock.name}`, 'the commit log', 'its entry is gone');
  throw lockLost(lock.name);
}

/** The operation that writes an entry of a rebuilt log. */
export function entryPut(entry: CommittedEntry): Operation {
  return { op: 'put', key: entryKey(entry.seq), value: JSON.stringify(entry) };
}

/** The operations that write the head and the checkpoint of a rebuilt log. */
export function headAndCheckpointPuts(head: number, checkpoint: Checkpoint | undefined): Operation[] {
  const puts: Operation[] = [];
  if (head > 0) puts.push({ op: 'put', key: HEAD_KEY, value: `${head}` });
  if (checkpoint) puts.push({ op: 'put', key: CHECKPOINT_KEY, value: JSON.stringify(checkpoint) });
  return puts;
}

/** TW_DHT_ENTRY_TOO_LARGE. */
function entryValue(lock: FencedLock, { segment, slots }: LogEntry, seq: number): string {
  const entry: CommittedEntry = { seq, segment, slots, claim: lock.name, fence: lock.fence };
  const value = JSON.stringify(entry);
  const bytes = Buffer.byteLength(value);
  if (bytes > MAX_ENTRY_BYTES) throw entryTooLarge(segment, bytes, MAX_ENTRY_BYTES);
  return value;
}

function headOf(kv: KeyValue | undefined): Head {
  if (kv === undefined) return { seq: 0, revision: 0 };
  const seq = Number(kv.value);
  if (!Number.isSafeInteger(seq)) throw documentDamaged(kv.key);
  return { seq, revision: kv.modRevision };
}

const decodeEntry = (kv: KeyValue) =>
  parseJsonValue<CommittedEntry>(kv, ['seq', 'segment', 'slots', 'claim', 'fence']);

function decodeCheckpoint(kv: KeyValue): StoredCheckpoint {
  return { ...parseJsonValue<Checkpoint>(kv, ['seq', 'manifest']), revision: kv.modRevision };
}

/** Yields the entries after a commit, as far as the log has them. */
export async function* entriesSince(log: CommitLog, seq: number): AsyncGenerator<CommittedEntry> {
  for (let last = seq; ; ) {
    const page = await log.readSince(last);
    // The entries are only in a newer checkpoint, from which the caller must start.
    if (page.kind === 'checkpoint') return;
    yield* page.entries;
    last = page.entries.at(-1)?.seq ?? last;
    if (!page.more) return;
  }
}
