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
  retryUntilAnswered,
  type Transaction,
  type Watch,
  type WatchSignal,
  watchLoop,
} from '../../coordination/index.js';
import { messageOf } from '../../errors.js';
import { collectionConflict, entryTooLarge, lockLost, logDamaged } from '../errors.js';
import { type StoredCollectionSchema, schemaKey } from './collection-schema.js';
import { committedMarker, type FencedLock, lockKey, parseLock } from './fenced-lock.js';

/** What a commit tells the others. */
export interface LogEntry {
  /** Name of the object that lists its records. */
  segment: string;
  /** Which slots it touches, as text; the log does not look into it. */
  slots: string;
}

export interface CommittedEntry extends LogEntry {
  seq: number;
  /** Name and fence of the claim that it was committed by. */
  claim: string;
  fence: number;
}

export interface Checkpoint {
  /** Number of the last commit that it holds. */
  seq: number;
  /** Name of the object that names its parts. */
  manifest: string;
}

/** A checkpoint as it is stored. */
export interface StoredCheckpoint extends Checkpoint {
  revision: number;
}

/** The answer to `readSince`: the next entries, or the checkpoint to load if these entries are deleted. */
export type LogPage =
  | { kind: 'entries'; head: number; entries: CommittedEntry[]; more: boolean }
  | { kind: 'checkpoint'; head: number; checkpoint: StoredCheckpoint };

/** A collection whose key has this revision when an entry is appended; 0: it has no key. */
export type SchemaRevision = Pick<StoredCollectionSchema, 'id' | 'revision'>;

/** The last number of the log, and the revision of the key that holds it. */
interface Head {
  seq: number;
  revision: number;
}

const HEAD = 'log/head';
const CHECKPOINT = 'log/checkpoint';
/** Numbers are padded, so that the order of keys is that of numbers. */
const entryKey = (seq: number) => `log/${`${seq}`.padStart(16, '0')}`;
/** After every entry's key. */
const ENTRIES_END = 'log/:';
const MAX_ENTRY_BYTES = 4096;
const READ_LIMIT = 200;
const TIMEOUT_MS = 30_000;
/** A checkpoint is written after so many commits, and so many entries before it are kept. */
export const CHECKPOINT_COMMITS = 1000;
/** How long a head that was seen shows that the store answers, ms. */
const HEAD_FRESH_MS = 1000;

/**
 * The order of all commits of a cluster.
 *
 * Invariants:
 * - entries are numbered from 1 without a gap, and `log/head` contains the last number;
 * - up to `keptEntries` entries before the checkpoint stay in the log, so that a reader a few commits behind reads them instead of the
 *   whole checkpoint;
 * - one transaction writes an entry, the head and the mark on the claim; it compares head, claim and collection. It changes the claim's
 *   key, so a claim commits once, however often the transaction is tried.
 */
export class CommitLog {
  /** The heads that commits of unknown outcome were tried with. Tried with the same head again, they are settled. */
  private readonly uncertain = new WeakMap<FencedLock, Head>();
  /** One after another: commits of one node would only refuse each other. */
  private readonly queue = new SerialQueue();
  /** The newest head that was read or written here, and when. */
  private lastHead: (Head & { at: number }) | undefined;

  constructor(
    private readonly store: CoordinationStore,
    private readonly keptEntries = CHECKPOINT_COMMITS,
  ) {}

  /**
   * Appends an entry and returns its number. `collection` is compared as it was read before the work. Errors after which nothing is
   * committed: TW_DHT_CLAIM_LOST, TW_DHT_COLLECTION_CHANGED, TW_DHT_COORDINATION_UNAVAILABLE, TW_DHT_ENTRY_TOO_LARGE. After
   * TW_DHT_OUTCOME_UNKNOWN the commit may be made later; a call with the same claim and entry returns its number, and commits if
   * it was not made. A claim that has committed another entry is lost.
   */
  commit(
    claim: FencedLock,
    entry: LogEntry,
    collection?: SchemaRevision,
    timeoutMs = TIMEOUT_MS,
  ): Promise<number> {
    const deadline = performance.now() + timeoutMs;
    return this.queue.run(() => this.commitUntil(deadline, { claim, entry, collection }));
  }

  private async commitUntil(deadline: number, commit: PendingCommit): Promise<number> {
    const { claim } = commit;
    const left = () => Math.max(0, deadline - performance.now());
    try {
      for (let tries = 0; ; tries++) {
        const head =
          this.uncertain.get(claim) ??
          (tries === 0 ? this.freshHead() : undefined) ??
          (await this.readHead(left()));
        const seq = await this.tryCommit(commit, head, left());
        if (seq !== undefined) {
          claim.markCommitted();
          return seq;
        }
        if (left() === 0) throw coordinationUnavailable('a commit', 'the log', 'others came first each time');
        await backOff(tries);
      }
    } catch (error) {
      if (!coordinationUnavailable.is(error)) throw error;
      // Where nothing was sent by now, an earlier call may have sent it.
      const kind = this.uncertain.has(claim) ? outcomeUnknown : coordinationUnavailable;
      throw kind.because(
        error,
        `the commit of ${claim.name}`,
        'the coordination store',
        messageOf(error.cause ?? error),
      );
    }
  }

  /** The number of the commit, or undefined where another commit came first. */
  private async tryCommit(commit: PendingCommit, head: Head, timeoutMs: number): Promise<number | undefined> {
    const { claim } = commit;
    let uncertain = this.uncertain.has(claim);
    try {
      const { succeeded, gets, revision } = await retryUntilAnswered(timeoutMs, (left, isUncertain) => {
        uncertain ||= isUncertain;
        return this.store.transact(transactionOf(commit, head), { timeoutMs: left });
      });
      this.uncertain.delete(claim);
      if (!succeeded) return earlierOutcome(commit, head, gets, uncertain);
      this.onHead({ seq: head.seq + 1, revision });
      return head.seq + 1;
    } catch (error) {
      if (outcomeUnknown.is(error)) this.uncertain.set(claim, head);
      throw error;
    }
  }

  /** What came after commit `seq`, at most `limit` entries. TW_DHT_LOG_DAMAGED. */
  async readSince(seq: number, limit = READ_LIMIT): Promise<LogPage> {
    const { gets } = await this.store.transact({
      success: [
        { op: 'get', key: HEAD },
        { op: 'get', key: entryKey(seq + 1), end: ENTRIES_END, limit },
      ],
    });
    const found = headOf(firstKeyValue(gets[0]!));
    this.onHead(found);
    const { seq: head } = found;
    if (head < seq) throw logDamaged(`it ends with commit ${head}, but commit ${seq} was seen`);
    const { kvs, more } = gets[1]!;
    const entries = kvs.map(decodeEntry);
    if (head > seq && entries[0]?.seq !== seq + 1) {
      // The transaction that moves the checkpoint deletes entries.
      const checkpoint = await this.readCheckpoint();
      if (checkpoint && checkpoint.seq > seq) return { kind: 'checkpoint', head, checkpoint };
    }
    const last = more ? seq + entries.length : head;
    for (let n = seq + 1; n <= last; n++)
      if (entries[n - seq - 1]?.seq !== n) throw logDamaged(`entry ${n} of ${head} is missing`);
    return { kind: 'entries', head, entries, more };
  }

  async readCheckpoint(): Promise<StoredCheckpoint | undefined> {
    const { gets } = await this.store.read([{ key: CHECKPOINT }]);
    const kv = firstKeyValue(gets[0]!);
    return kv && decodeCheckpoint(kv);
  }

  /** The number of the last commit, and of the last one that the checkpoint holds. */
  async bounds(timeoutMs = TIMEOUT_MS): Promise<{ head: number; checkpoint: number }> {
    const { gets } = await this.store.read([{ key: HEAD }, { key: CHECKPOINT }], { timeoutMs });
    const checkpoint = firstKeyValue(gets[1]!);
    return {
      head: headOf(firstKeyValue(gets[0]!)).seq,
      checkpoint: checkpoint ? decodeCheckpoint(checkpoint).seq : 0,
    };
  }

  /**
   * Replaces the checkpoint `expected` (undefined: there is none), and deletes the entries that lie more than `keptEntries` before the
   * new one. False if another node has moved it.
   */
  async moveCheckpoint(expected: StoredCheckpoint | undefined, next: Checkpoint): Promise<boolean> {
    const { seq, manifest } = next;
    if (seq <= (expected?.seq ?? 0)) return false;
    const value = JSON.stringify({ seq, manifest } satisfies Checkpoint);
    const { succeeded, gets } = await retryUntilAnswered(TIMEOUT_MS, (left) =>
      this.store.transact(
        {
          compare: [{ key: CHECKPOINT, modRevision: expected?.revision ?? 0 }],
          success: [
            { op: 'put', key: CHECKPOINT, value },
            { op: 'delete', key: entryKey(0), end: entryKey(Math.max(0, seq - this.keptEntries) + 1) },
          ],
          failure: [{ op: 'get', key: CHECKPOINT }],
        },
        { timeoutMs: left },
      ),
    );
    // One that is there already was put by an attempt whose answer was lost.
    return succeeded || firstKeyValue(gets[0]!)?.value === value;
  }

  /** Deletes the entries up to commit `seq`, which the checkpoint holds. Readers that are further behind load the checkpoint. */
  async trim(seq: number): Promise<void> {
    await this.store.transact({
      success: [{ op: 'delete', key: entryKey(0), end: entryKey(seq + 1) }],
    });
  }

  /** Calls `read` at first and after commits, one call after another: see `follow`. */
  watch(read: (wake: WatchSignal) => Promise<void>, failed: (error: unknown) => void): Watch {
    return watchLoop(this.store, { key: HEAD }, read, failed);
  }

  private async readHead(timeoutMs: number): Promise<Head> {
    const { gets } = await this.store.read([{ key: HEAD }], { timeoutMs });
    const head = headOf(firstKeyValue(gets[0]!));
    this.onHead(head);
    return head;
  }

  private onHead(head: Head): void {
    this.lastHead = { ...head, at: performance.now() };
  }

  /**
   * Where the store has just answered, a commit need not read the head first. Else that tells whether it answers, before anything is sent whose
   * outcome would be unknown.
   */
  private freshHead(): Head | undefined {
    return this.lastHead && performance.now() - this.lastHead.at < HEAD_FRESH_MS ? this.lastHead : undefined;
  }

  /** Whether a wake tells of nothing that is new to who has applied commit `applied`. */
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
  claim: FencedLock;
  entry: LogEntry;
  collection: SchemaRevision | undefined;
}

function transactionOf({ claim, entry, collection }: PendingCommit, head: Head): Transaction {
  const seq = head.seq + 1;
  const claimKey = lockKey(claim.name);
  const compare = [
    { key: HEAD, modRevision: head.revision },
    { key: claimKey, modRevision: claim.fence },
  ];
  if (collection) compare.push({ key: schemaKey(collection.id), modRevision: collection.revision });
  return {
    compare,
    success: [
      { op: 'put', key: HEAD, value: `${seq}` },
      { op: 'put', key: entryKey(seq), value: entryValue(claim, entry, seq) },
      { op: 'put', key: claimKey, value: committedMarker(claim, seq, entry.segment) },
    ],
    failure: [
      { op: 'get', key: claimKey },
      { op: 'get', key: entryKey(seq) },
      { op: 'get', key: CHECKPOINT },
      { op: 'get', key: schemaKey(collection?.id ?? '') },
    ],
  };
}

/**
 * After a try that was refused: the number that an earlier one of unknown outcome has got, or undefined where only the head has
 * moved. TW_DHT_CLAIM_LOST, TW_DHT_COLLECTION_CHANGED.
 */
function earlierOutcome(
  { claim, entry: { segment }, collection }: PendingCommit,
  head: Head,
  gets: RangeResult[],
  uncertain: boolean,
): number | undefined {
  const [claimKv, entryKv, checkpointKv, collectionKv] = gets.map(firstKeyValue);
  const state = claimKv && parseLock(claimKv);
  if (state?.fence === claim.fence) {
    if (state.done !== undefined && state.segment === segment) return state.done;
    if (state.done !== undefined) throw lockLost(claim.name);
    if (collection && (collectionKv?.modRevision ?? 0) !== collection.revision)
      throw collectionConflict(collection.id);
    return undefined;
  }
  // The mark of a commit may have been replaced by the next claim; its entry is there for a while longer.
  const entry = entryKv && decodeEntry(entryKv);
  if (entry?.fence === claim.fence && entry.segment === segment) return entry.seq;
  const isGone = !entry && checkpointKv !== undefined && decodeCheckpoint(checkpointKv).seq > head.seq;
  if (uncertain && isGone)
    throw outcomeUnknown(`the commit of ${claim.name}`, 'the commit log', 'its entry is gone');
  throw lockLost(claim.name);
}

/** Puts an entry of a log that is written anew. */
export function entryPut(entry: CommittedEntry): Operation {
  return { op: 'put', key: entryKey(entry.seq), value: JSON.stringify(entry) };
}

/** Puts the last number of a log that is written anew, and its checkpoint. */
export function headAndCheckpointPuts(head: number, checkpoint: Checkpoint | undefined): Operation[] {
  const puts: Operation[] = [];
  if (head > 0) puts.push({ op: 'put', key: HEAD, value: `${head}` });
  if (checkpoint) puts.push({ op: 'put', key: CHECKPOINT, value: JSON.stringify(checkpoint) });
  return puts;
}

/** TW_DHT_ENTRY_TOO_LARGE. */
function entryValue(claim: FencedLock, { segment, slots }: LogEntry, seq: number): string {
  const entry: CommittedEntry = { seq, segment, slots, claim: claim.name, fence: claim.fence };
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
