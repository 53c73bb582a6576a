/** The coordination store of a single process in LevelDB, and that of a single node in its data folder. */

import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import type { Level } from 'level';
import { SerialQueue } from '../async/index.js';
import { asStorageError, LevelWriter, makeFolderDurably, openLevel } from '../storage/index.js';
import { coordinationRefused, leaseGone } from './errors.js';
import type {
  CoordinationStore,
  KeyRange,
  KeyValue,
  Operation,
  RangeResult,
  RevisionCompare,
  Transaction,
  TransactionResult,
  Watch,
  WatchSignal,
} from './store.js';

/** LevelDB has the revision under this key, and one record for each key. */
const REVISION_KEY = 'revision';
const KEY_PREFIX = 'key/';
/** Revision of an empty store, as in etcd; 0 means absent. */
const FIRST_REVISION = 1;

/**
 * The coordination store of a single process, in a folder of its own, which LevelDB locks.
 *
 * Invariants: Transactions and reads are executed one after another. Each transaction is one synced batch that includes the revision,
 * so a kill leaves all of it or nothing. If a write fails, only the next open shows whether it was made; until then the store accepts no
 * further transactions (see `LevelWriter`), but still reads. A lease belongs to this process; opening the store ends all earlier leases.
 */
export class LevelStore implements CoordinationStore {
  private readonly queue = new SerialQueue();
  private readonly leases = new Map<string, LeaseEntry>();
  private readonly watches = new Set<{ range: KeyRange; onSignal: (signal: WatchSignal) => void }>();

  private readonly writer: LevelWriter<string>;

  private constructor(
    private readonly db: Level<string, string>,
    private revision: number,
  ) {
    this.writer = new LevelWriter(db);
  }

  /** Opens the store and creates its folder if it does not exist. Throws the errors of `openLevel`. */
  static async open(folder: string): Promise<LevelStore> {
    const db = await openLevel<string>(folder);
    try {
      const store = new LevelStore(db, Number((await db.get(REVISION_KEY)) ?? FIRST_REVISION));
      await store.deleteStaleLeaseKeys();
      return store;
    } catch (error) {
      await db.close();
      throw asStorageError(error, folder);
    }
  }

  transact(transaction: Transaction): Promise<TransactionResult> {
    return this.serialize(async () => {
      const succeeded = await this.holds(transaction.compare ?? []);
      const operations = (succeeded ? transaction.success : transaction.failure) ?? [];
      this.check(operations);
      const changes = new TransactionChanges(this.db, this.revision + 1);
      const gets: RangeResult[] = [];
      for (const operation of operations) {
        if (operation.op === 'put') await changes.put(operation.key, operation.value, operation.lease ?? '');
        else if (operation.op === 'delete') await changes.delete(operation);
        else gets.push(await changes.range(operation, operation.limit));
      }
      await this.write(changes);
      return { succeeded, revision: this.revision, gets };
    });
  }

  read(ranges: KeyRange[]): Promise<TransactionResult> {
    return this.transact({ success: ranges.map((range) => ({ op: 'get', ...range })) });
  }

  async grantLease(ttl: number): Promise<string> {
    const id = randomUUID();
    const timer = setTimeout(() => void this.expire(id), ttl * 1000).unref();
    this.leases.set(id, { timer, keys: new Set() });
    return id;
  }

  async keepAlive(id: string): Promise<boolean> {
    const lease = this.leases.get(id);
    lease?.timer.refresh();
    return lease !== undefined;
  }

  async revokeLease(id: string): Promise<void> {
    await this.serialize(() => this.deleteLeaseKeys(id));
  }

  watch(range: KeyRange, onSignal: (signal: WatchSignal) => void): Watch {
    const watch = { range, onSignal };
    this.watches.add(watch);
    setImmediate(() => {
      if (this.watches.has(watch)) onSignal({ reason: 'start', revision: this.revision });
    });
    return { close: () => void this.watches.delete(watch) };
  }

  async close(): Promise<void> {
    this.watches.clear();
    for (const { timer } of this.leases.values()) clearTimeout(timer);
    this.leases.clear();
    await this.serialize(() => this.writer.close());
  }

  private async holds(compares: RevisionCompare[]): Promise<boolean> {
    for (const compare of compares) {
      const kv = await readRecord(this.db, compare.key);
      const holds =
        'modRevision' in compare
          ? (kv?.modRevision ?? 0) === compare.modRevision
          : (kv?.createRevision ?? 0) === compare.createRevision;
      if (!holds) return false;
    }
    return true;
  }

  /** Throws for the same errors as etcd. */
  private check(operations: Operation[]): void {
    const puts = new Set<string>();
    for (const operation of operations) {
      if (operation.op !== 'put') continue;
      const { key, lease = '' } = operation;
      if (lease !== '' && !this.leases.has(lease)) throw leaseGone(`the change of ${key}`);
      if (puts.has(key) || operations.some((other) => other.op === 'delete' && isIn(other, key)))
        throw coordinationRefused('a transaction', this.db.location, `it writes key ${key} twice`);
      puts.add(key);
    }
  }

  private async write(changes: TransactionChanges): Promise<void> {
    if (changes.records.size === 0) return;
    const batch = [...changes.records].map(([key, kv]) =>
      kv === undefined
        ? { type: 'del' as const, key: KEY_PREFIX + key }
        : { type: 'put' as const, key: KEY_PREFIX + key, value: JSON.stringify(kv) },
    );
    await this.writer.write([...batch, { type: 'put', key: REVISION_KEY, value: `${changes.revision}` }]);
    this.revision = changes.revision;
    for (const [key, kv] of changes.records) this.leases.get(kv?.lease ?? '')?.keys.add(key);
    for (const { range, onSignal } of [...this.watches])
      if ([...changes.records.keys()].some((key) => isIn(range, key)))
        onSignal({ reason: 'change', revision: this.revision });
  }

  /** Called by the timer of a lease. If the disk fails, the next transaction reports that, and the timer runs again. */
  private async expire(id: string): Promise<void> {
    try {
      await this.serialize(() => this.deleteLeaseKeys(id));
    } catch {
      this.leases.get(id)?.timer.refresh();
    }
  }

  private async deleteLeaseKeys(id: string): Promise<void> {
    const lease = this.leases.get(id);
    if (lease === undefined) return;
    await this.deleteByLease([...lease.keys], (keyLease) => keyLease === id);
    clearTimeout(lease.timer);
    this.leases.delete(id);
  }

  private async deleteStaleLeaseKeys(): Promise<void> {
    const keys = await this.db.keys({ gte: KEY_PREFIX, lt: `${KEY_PREFIX}\u{10ffff}` }).all();
    await this.deleteByLease(
      keys.map((key) => key.slice(KEY_PREFIX.length)),
      (keyLease) => keyLease !== '',
    );
  }

  /** Deletes those of `keys` whose lease matches. */
  private async deleteByLease(keys: string[], matches: (lease: string) => boolean): Promise<void> {
    const changes = new TransactionChanges(this.db, this.revision + 1);
    for (const key of keys)
      if (matches((await readRecord(this.db, key))?.lease ?? '')) await changes.delete({ key });
    await this.write(changes);
  }

  private serialize<T>(work: () => Promise<T>): Promise<T> {
    return this.queue.run(work).catch((error: unknown) => {
      throw asStorageError(error, this.db.location);
    });
  }
}

interface LeaseEntry {
  timer: NodeJS.Timeout;
  /** Keys that were put under the lease; some may have been put again without it. */
  keys: Set<string>;
}

/** The changes of a transaction before they are written. Its reads see the store with these changes. */
class TransactionChanges {
  /** New records by key; undefined: deleted. */
  readonly records = new Map<string, KeyValue | undefined>();

  constructor(
    private readonly db: Level<string, string>,
    readonly revision: number,
  ) {}

  async put(key: string, value: string, lease: string): Promise<void> {
    const createRevision = (await readRecord(this.db, key))?.createRevision ?? this.revision;
    this.records.set(key, { key, value, createRevision, modRevision: this.revision, lease });
  }

  async delete(range: KeyRange): Promise<void> {
    for (const { key } of (await this.range(range)).kvs) this.records.set(key, undefined);
  }

  async range(range: KeyRange, limit = Infinity): Promise<RangeResult> {
    const found = new Map<string, KeyValue>();
    const atMost = limit === Infinity ? -1 : limit + this.records.size + 1;
    if (range.end === undefined) {
      const kv = await readRecord(this.db, range.key);
      if (kv) found.set(range.key, kv);
    } else {
      const values = this.db.values({
        gte: KEY_PREFIX + range.key,
        lt: KEY_PREFIX + range.end,
        limit: atMost,
      });
      for (const value of await values.all()) {
        const kv = JSON.parse(value) as KeyValue;
        found.set(kv.key, kv);
      }
    }
    for (const [key, kv] of this.records) {
      if (!isIn(range, key)) continue;
      if (kv) found.set(key, kv);
      else found.delete(key);
    }
    const kvs = [...found.values()].sort((a, b) => compareBytes(a.key, b.key));
    return { kvs: kvs.slice(0, limit), more: kvs.length > limit };
  }
}

async function readRecord(db: Level<string, string>, key: string): Promise<KeyValue | undefined> {
  const value: string | undefined = await db.get(KEY_PREFIX + key);
  return value === undefined ? undefined : (JSON.parse(value) as KeyValue);
}

function isIn({ key: first, end }: KeyRange, key: string): boolean {
  return end === undefined ? key === first : compareBytes(first, key) <= 0 && compareBytes(key, end) < 0;
}

const compareBytes = (a: string, b: string) => Buffer.compare(Buffer.from(a), Buffer.from(b));

/** Opens the coordination store in a data folder. LevelDB does not sync the entry of its folder in the parent folder. */
export async function openFolderStore(dataFolder: string): Promise<LevelStore> {
  const folder = join(dataFolder, 'coordination');
  await makeFolderDurably(folder);
  return LevelStore.open(folder);
}

/** Opens the store at its first use, because most commands do not need it. Invariant: the store is open at most once. */
export class FolderCoordination {
  private opened: Promise<LevelStore> | undefined;

  constructor(private readonly dataFolder: string) {}

  readonly open = (): Promise<CoordinationStore> => {
    this.opened ??= openFolderStore(this.dataFolder).catch((error) => {
      this.opened = undefined;
      throw error;
    });
    return this.opened;
  };

  async close(): Promise<void> {
    await (await this.opened)?.close();
  }
}
