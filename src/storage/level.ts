/** LevelDB: opening without silent loss, and the only writer of a database. */
import { open, readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Level } from 'level';
import { SerialQueue } from '../async/index.js';
import type { TilewrightError } from '../errors.js';
import { asStorageError, onDisk, orIfMissing, writesStopped } from './disk.js';
import { storageDamaged } from './errors.js';
import { writeFileDurably } from './files.js';

/**
 * Opens a database. LevelDB drops unreadable parts of its log at open, deletes the log, and says so only in a text file that the next open
 * replaces. Files of lost records would look like leftovers and be removed, so the log is read first. If it has lost records, the file
 * `marker` says so durably before LevelDB changes anything, and while it exists nobody opens the database. Throws TW_STORAGE_LOCKED,
 * TW_STORAGE_DAMAGED, TW_STORAGE_READ_ONLY, TW_STORAGE_FULL.
 */
export async function openLevel<V>(
  folder: string,
  options: { valueEncoding?: string; createIfMissing?: boolean } = {},
  marker = `${folder}.damaged`,
): Promise<Level<string, V>> {
  return onDisk(folder, async () => {
    if ((await readText(marker)) !== undefined) throw storageDamaged(folder, marker);
    const unreadable = await unreadableRecord(folder);
    const damaged = unreadable === undefined ? undefined : await markDamaged(folder, marker, unreadable);
    const db = new Level<string, V>(folder, options);
    await db.open();
    const dropped = await droppedRecords(folder);
    if (!damaged && dropped === undefined) return db;
    // The records that LevelDB could read are in a table now, so the database opens once the mark is removed.
    await db.close();
    throw damaged ?? (await markDamaged(folder, marker, dropped!));
  });
}

/** Marks a database as one that has lost records. Returns TW_STORAGE_DAMAGED. */
export async function markDamaged(folder: string, marker: string, reason: string): Promise<TilewrightError> {
  await onDisk(folder, () => writeFileDurably(marker, `${reason}\n`));
  return storageDamaged(folder, marker);
}

const readText = (file: string) => orIfMissing(readFile(file, 'utf8'), undefined);

/** The line in which LevelDB reports damage of its log or its tables at this open. */
async function droppedRecords(folder: string): Promise<string | undefined> {
  const report = await readText(join(folder, 'LOG'));
  return report?.split('\n').find((line) => /dropping \d+ bytes|Corruption:/.test(line));
}

/** Time after which the record that another process was writing is complete. */
const WRITE_MS = 100;

/** The place of the first record of the logs that LevelDB would drop; undefined if it would drop none. */
async function unreadableRecord(folder: string): Promise<string | undefined> {
  for (const name of await orIfMissing(readdir(folder), [])) {
    if (!/^\d+\.log$/.test(name)) continue;
    const file = join(folder, name);
    const damage = await unreadableIn(file);
    if (damage === undefined) continue;
    await sleep(WRITE_MS);
    if ((await unreadableIn(file)) === damage) return `${file}: ${damage}`;
  }
  return undefined;
}

/** Blocks that are read at once. */
const BLOCKS = 32;

async function unreadableIn(file: string): Promise<string | undefined> {
  const handle = await orIfMissing(open(file), undefined);
  if (!handle) return undefined;
  try {
    const log = new LogReader();
    const bytes = Buffer.alloc(BLOCKS * BLOCK_BYTES);
    for (;;) {
      let filled = 0;
      while (filled < bytes.length) {
        const { bytesRead } = await handle.read(bytes, filled, bytes.length - filled);
        if (bytesRead === 0) break;
        filled += bytesRead;
      }
      for (let at = 0; at < filled; at += BLOCK_BYTES) {
        const reason = log.read(bytes.subarray(at, Math.min(at + BLOCK_BYTES, filled)));
        if (reason !== undefined) return reason;
      }
      if (filled < bytes.length) return undefined;
    }
  } finally {
    await handle.close();
  }
}

const BLOCK_BYTES = 32_768;
/** Checksum (4 bytes), length (2) and type (1). */
const HEADER_BYTES = 7;
const [NONE, FULL, FIRST, MIDDLE, LAST] = [0, 1, 2, 3, 4];

/**
 * Finds damage in a log of LevelDB by the rules of its own reader (https://github.com/google/leveldb/blob/main/doc/log_format.md). A record that
 * ends with the file is that of a writer that was interrupted, and no damage.
 */
export class LogReader {
  private offset = 0;
  /** Bytes of the fragments of the current record; undefined between records. */
  private fragments: number | undefined;
  /** True behind the last record, where only reserved bytes may follow. LevelDB would not report records that follow zeros. */
  private hasEnded = false;

  /** Reads the next block, of 32 KiB unless it is the last one. Returns the reason why records would be dropped. */
  read(block: Buffer): string | undefined {
    const from = this.offset;
    this.offset += block.length;
    const damage = (what: string, at: number) => `${what} at byte ${from + at}`;
    if (this.hasEnded) return block.some(Boolean) ? damage('a gap before a record', 0) : undefined;
    for (let at = 0; block.length - at >= HEADER_BYTES; ) {
      const length = block.readUInt16LE(at + 4);
      const type = block[at + 6]!;
      const end = at + HEADER_BYTES + length;
      if (end > block.length) return block.length < BLOCK_BYTES ? undefined : damage('a wrong length', at);
      if (type === NONE && length === 0) {
        this.hasEnded = true;
        const isReserved = this.fragments === undefined && !block.subarray(at).some(Boolean);
        return isReserved ? undefined : damage('a gap', at);
      }
      if (maskedCrc32c(block.subarray(at + 6, end)) !== block.readUInt32LE(at))
        return damage('a wrong checksum', at);
      const isFirst = type === FULL || type === FIRST;
      // LevelDB tolerates an empty first fragment, which its earlier versions wrote.
      if (isFirst ? this.fragments : this.fragments === undefined)
        return damage(isFirst ? 'a record without an end' : 'a record without a start', at);
      if (type > LAST || type === NONE) return damage(`a record of unknown type ${type}`, at);
      if (type === FIRST) this.fragments = length;
      else if (type === MIDDLE) this.fragments! += length;
      else this.fragments = undefined;
      at = end;
    }
    return undefined;
  }
}

/** CRC-32C (RFC 3720), of one byte each. */
const CRC32C = Uint32Array.from({ length: 256 }, (_, byte) => {
  let crc = byte;
  for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ 0x82f63b78 : crc >>> 1;
  return crc;
});

/** LevelDB stores checksums rotated and shifted, because data may contain checksums. */
function maskedCrc32c(bytes: Uint8Array): number {
  let crc = 0xffffffff;
  for (let i = 0; i < bytes.length; i++) crc = CRC32C[(crc ^ bytes[i]!) & 0xff]! ^ (crc >>> 8);
  crc = ~crc;
  return (((crc >>> 15) | (crc << 17)) + 0xa282ead8) >>> 0;
}

/** One put or delete. */
export type LevelChange<V> = { type: 'put'; key: string; value: V } | { type: 'del'; key: string };

/**
 * The only writer of a LevelDB.
 *
 * A write that fails, for instance because the disk is full, may leave a torn record in LevelDB's log. LevelDB keeps appending
 * behind that record, but the next open drops everything behind it. Therefore batches are written one after another, and none
 * after one that has failed. The next open finds all acknowledged batches and starts a new log. Only then is it known whether the
 * failed batch was made.
 */
export class LevelWriter<V> {
  private readonly batches = new SerialQueue();
  private failed: unknown;
  private firstCounts: Promise<number[]> | undefined;
  /** Keys of each prefix that batches have added since the first count began. */
  private growth: number[] | undefined;

  /** `prefixes`: those of keys that are counted. */
  constructor(
    private readonly db: Level<string, V>,
    private readonly prefixes: readonly string[] = [],
  ) {}

  /** Numbers of keys with each of the prefixes. The first call reads these keys; later ones answer from memory. */
  async counts(): Promise<number[]> {
    this.firstCounts ??= this.countKeys().catch((error) => {
      this.firstCounts = undefined;
      throw error;
    });
    const first = await this.firstCounts;
    return first.map((count, i) => count + this.growth![i]!);
  }

  /** Error of a failed batch, after which no more are accepted; undefined if none has failed. */
  get writeError(): unknown {
    return this.failed;
  }

  /**
   * Writes all changes or none. If `sync` is false, a power cut may undo them after the promise has resolved. Throws TW_STORAGE_FULL,
   * TW_STORAGE_READ_ONLY or TW_STORAGE_IO for the batch that fails, and the same code for every later one.
   */
  write(changes: readonly LevelChange<V>[], sync = true): Promise<void> {
    return this.batches.run(() => this.writeNow(changes, sync));
  }

  /** Closes the database after the writes that were handed in before. */
  async close(): Promise<void> {
    await this.batches.idle();
    await onDisk(this.db.location, () => this.db.close());
  }

  private async writeNow(changes: readonly LevelChange<V>[], sync: boolean): Promise<void> {
    if (this.failed !== undefined) throw writesStopped(this.failed, this.db.location);
    const growth = this.growth && (await this.growthBy(changes));
    try {
      // A chained batch takes half the time of an array.
      const batch = this.db.batch();
      for (const change of changes)
        if (change.type === 'put') batch.put(change.key, change.value);
        else batch.del(change.key);
      await batch.write({ sync });
      if (growth) this.growth = this.growth!.map((sum, i) => sum + growth[i]!);
    } catch (error) {
      this.failed = asStorageError(error, this.db.location);
      throw this.failed;
    }
  }

  private async countKeys(): Promise<number[]> {
    // An iterator reads the database as it was when it was made. No batch is written between all of them.
    const iterators = await this.batches.run(async () => {
      this.growth = this.prefixes.map(() => 0);
      return this.prefixes.map((prefix) => this.db.keys({ gte: prefix, lt: `${prefix}\x7f` }));
    });
    return onDisk(this.db.location, () =>
      Promise.all(
        iterators.map(async (keys) => {
          let count = 0;
          for await (const _ of keys) count++;
          return count;
        }),
      ),
    );
  }

  /** The keys that a batch adds, less those that it removes, by prefix. */
  private async growthBy(changes: readonly LevelChange<V>[]): Promise<number[]> {
    return Promise.all(
      this.prefixes.map(async (prefix) => {
        const isPut = new Map(
          changes.flatMap(({ key, type }) =>
            key.startsWith(prefix) ? [[key, type === 'put'] as const] : [],
          ),
        );
        const growth = await Promise.all(
          Array.from(isPut, async ([key, is]) => Number(is) - Number(await this.db.has(key))),
        );
        return growth.reduce((sum, one) => sum + one, 0);
      }),
    );
  }
}
