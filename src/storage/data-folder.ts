/** The data folder of a node: its identity, its lock, its catalogue, and the removal of version folders. */
import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { SerialQueue } from '../async/index.js';
import { messageOf, type TilewrightError } from '../errors.js';
import { parseJson, parseJsonOr } from '../utils/json-text.js';
import { Catalogue, type CatalogueChange, type Table } from './catalogue.js';
import { onDisk, orIfMissing } from './disk.js';
import { dataFolderIsStore, noCatalogue, storageCorrupt, storageFormat, storageLocked } from './errors.js';
import { fsyncPath, makeFolderDurably, removeVersions, writeFileDurably } from './files.js';
import { markDamaged } from './level.js';

/** A folder of another format is refused: its tiles have other files and pixel grids, and masks of another meaning. */
const FOLDER_FORMAT = 4;

/** `node.json`: created once and never changed. */
interface NodeIdentity {
  id: string;
  format: number;
  created: string;
}

/**
 * `lock`: tells other commands of the same user (mode 0600) how to reach the process that has the folder open. It is
 * information only: LevelDB's own lock excludes a second process.
 */
interface LockInfo {
  pid: number;
  /** Base URL of the server; null if the process is not a server. */
  url: string | null;
  /** 32 random bytes in hex: a request with this secret comes from the user who owns the folder. */
  secret: string;
  started: string;
}

/** The lock file of a folder; undefined if it does not exist or this user may not read it. */
export async function readLock(dir: string): Promise<LockInfo | undefined> {
  const text = await readText(join(dir, 'lock')).catch((error) => {
    if (error.code !== 'EACCES') throw error;
  });
  return text === undefined
    ? undefined
    : parseJsonOr<LockInfo>(text, (cause) => storageCorrupt.because(cause, 'the file lock', dir));
}

/**
 * Invariant: between open and close only this process writes below `dir`; the lock file exists only while LevelDB's
 * lock is held.
 */
export class DataFolder {
  private constructor(
    readonly dir: string,
    readonly node: NodeIdentity,
    readonly catalogue: Catalogue,
    private info: LockInfo,
  ) {}

  /**
   * Opens or creates a data folder. Throws TW_STORAGE_LOCKED, TW_STORAGE_FORMAT, TW_STORAGE_IS_STORE,
   * TW_STORAGE_READ_ONLY, TW_STORAGE_FULL.
   */
  static async open(dir: string): Promise<DataFolder> {
    await onDisk(dir, async () => {
      await makeFolderDurably(dir);
      await readIdentity(dir);
      if ((await readText(join(dir, 'cluster.json'))) !== undefined) throw dataFolderIsStore(dir);
    });
    const catalogue = await openCatalogue(dir);
    try {
      return await onDisk(dir, async () => {
        const node = await identityOf(dir);
        for (const part of ['tiles', 'models']) await mkdir(join(dir, part), { recursive: true });
        await fsyncPath(dir);
        const secret = randomBytes(32).toString('hex');
        const info = { pid: process.pid, url: null, secret, started: new Date().toISOString() };
        await writeLock(dir, info);
        return new DataFolder(dir, node, catalogue, info);
      });
    } catch (error) {
      await catalogue.close();
      throw error;
    }
  }

  /** Marks the catalogue as one that has lost records, so that no process opens the folder. Returns TW_STORAGE_DAMAGED. */
  async markDamaged(reason: string): Promise<TilewrightError> {
    return markDamaged(join(this.dir, 'catalogue'), join(this.dir, DAMAGED_MARKER), reason);
  }

  get lock(): LockInfo {
    return this.info;
  }

  /** Publishes the URL at which this process serves the folder. */
  async announce(url: string): Promise<void> {
    this.info = { ...this.info, url };
    await onDisk(this.dir, () => writeLock(this.dir, this.info));
  }

  /** Removes the lock file first: once LevelDB's lock is free, another process may write its own. */
  async close(): Promise<void> {
    try {
      await onDisk(this.dir, () => rm(join(this.dir, 'lock'), { force: true }));
    } finally {
      await this.catalogue.close();
    }
  }
}

async function openCatalogue(dir: string): Promise<Catalogue> {
  const isNew = (await readIdentity(dir)) === undefined;
  if (!isNew && !existsSync(join(dir, 'catalogue'))) throw noCatalogue(dir);
  try {
    return await Catalogue.open(join(dir, 'catalogue'), isNew, join(dir, DAMAGED_MARKER));
  } catch (error) {
    if (!storageLocked.is(error)) throw error;
    const lock = await readLock(dir);
    const holder = lock ? `process ${lock.pid}${lock.url ? ` at ${lock.url}` : ''}` : 'another process';
    throw storageLocked.because(error, dir, holder);
  }
}

/** A file that marks a catalogue that has lost records. */
const DAMAGED_MARKER = 'damaged';

async function readIdentity(dir: string): Promise<NodeIdentity | undefined> {
  const file = join(dir, 'node.json');
  const text = await onDisk(file, () => readText(file));
  if (text === undefined) return undefined;
  let parsed: { id?: unknown; format?: unknown; created?: unknown } | null;
  try {
    parsed = parseJson(text) as typeof parsed;
  } catch (error) {
    throw storageFormat.because(error, file, { damage: messageOf(error) });
  }
  const { format, id, created } = parsed ?? {};
  if (format === undefined) throw storageFormat(file, { damage: 'it has no format' });
  if (format !== FOLDER_FORMAT) throw storageFormat(file, { format, readable: FOLDER_FORMAT });
  if (typeof id !== 'string' || typeof created !== 'string')
    throw storageFormat(file, { damage: 'it has no id or no date of creation' });
  return { id, format, created };
}

/** The identity of the folder, which is written first if it has none. */
async function identityOf(dir: string): Promise<NodeIdentity> {
  const existing = await readIdentity(dir);
  if (existing) return existing;
  const created = new Date().toISOString();
  const node: NodeIdentity = { id: randomBytes(8).toString('hex'), format: FOLDER_FORMAT, created };
  await writeFileDurably(join(dir, 'node.json'), `${JSON.stringify(node, null, 2)}\n`);
  return node;
}

function writeLock(dir: string, info: LockInfo): Promise<void> {
  return writeFileDurably(join(dir, 'lock'), `${JSON.stringify(info)}\n`, 0o600);
}

/** The text of a file; undefined if it does not exist. */
const readText = (file: string) => orIfMissing(readFile(file, 'utf8'), undefined);

const GC_BATCH_RECORDS = 500;

/**
 * Removes version folders that no record names: those of interrupted writes, and replaced versions. Invariant: a version folder is removed
 * only while `pending` (at open, when nothing is being written) or `superseded` names it, and its record is removed after its files, so the
 * next run completes an interrupted one.
 */
export class VersionGc {
  lastError: unknown;
  private timer: NodeJS.Timeout | undefined;
  private readonly queue = new SerialQueue();

  constructor(
    private readonly folder: DataFolder,
    /** Time for which a superseded version is kept. */
    private readonly delayMs: number,
    private readonly onRemoved: (folders: string[]) => void,
  ) {}

  /** Called at open, before anything is written. */
  async start(): Promise<void> {
    await this.removeOf(this.folder.catalogue.pending, Infinity);
    await this.collect();
  }

  /** Removes the superseded versions that are due; sets a timer if others remain. */
  collect(): Promise<void> {
    return this.queue.run(async () => {
      if (await this.removeOf(this.folder.catalogue.superseded, Date.now() - this.delayMs)) this.schedule();
    });
  }

  /** Schedules a run after the delay. The timer does not keep the process alive. */
  schedule(): void {
    this.timer ??= setTimeout(() => this.collectInBackground(), this.delayMs).unref();
  }

  /** Run by the timer. `Storage.stats` reports an error, and the next run tries again. */
  private async collectInBackground(): Promise<void> {
    this.timer = undefined;
    try {
      await this.collect();
      this.lastError = undefined;
    } catch (error) {
      this.lastError = error;
      this.schedule();
    }
  }

  async stop(): Promise<void> {
    await this.queue.idle();
    clearTimeout(this.timer);
  }

  /** Removes the folders that `table` has named since `until` or earlier; returns true if later ones remain. */
  private async removeOf(table: Table<{ since: number }>, until: number): Promise<boolean> {
    let due: string[] = [];
    let othersRemain = false;
    const remove = async () => {
      await removeVersions(this.folder.dir, due);
      this.onRemoved(due);
      const deletes: CatalogueChange[] = due.map((path) => table.delete(path));
      await this.folder.catalogue.write(deletes);
      due = [];
    };
    for await (const { key, record } of table.scan()) {
      // The folder of a damaged record stays, because its key may be damaged as well; `verify` lists it.
      if (!record) continue;
      if (record.since > until) othersRemain = true;
      else due.push(key);
      if (due.length === GC_BATCH_RECORDS) await remove();
    }
    await remove();
    return othersRemain;
  }
}
