/** The data folder of a node: its identity, its lock, and its catalogue. */
import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { messageOf, type TilewrightError } from '../../errors.js';
import { parseJson, parseJsonOr } from '../../utils/json-text.js';
import { Catalogue } from '../catalogue/index.js';
import {
  dataFolderIsStore,
  noCatalogue,
  storageCorrupt,
  storageDamaged,
  storageFormat,
  storageLocked,
} from '../errors.js';
import { fsyncPath, makeFolderDurably, onDisk, orIfMissing, writeFileDurably } from '../files/index.js';

/** Programs that know only other formats refuse the folder. Records of format 1, which contain their schema, can still be read. */
const FORMAT = 2;
const READABLE_FORMATS: unknown[] = [1, FORMAT];

/** `node.json`: created once and never changed, except for its format. */
export interface NodeIdentity {
  id: string;
  format: number;
  created: string;
}

/**
 * `lock`: tells other commands of the same user (mode 0600) how to reach the process that has the folder open. It is
 * information only: LevelDB's own lock excludes a second process.
 */
export interface LockInfo {
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
        const node = await currentIdentity(dir);
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
    return markDamaged(this.dir, reason);
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
  const marker = join(dir, DAMAGED_MARKER);
  if ((await readText(marker)) !== undefined) throw storageDamaged(dir, marker);
  const isNew = (await readIdentity(dir)) === undefined;
  if (!isNew && !existsSync(join(dir, 'catalogue'))) throw noCatalogue(dir);
  try {
    const catalogue = await Catalogue.open(join(dir, 'catalogue'), isNew);
    await refuseLostRecords(dir, catalogue);
    return catalogue;
  } catch (error) {
    if (!storageLocked.is(error)) throw error;
    const lock = await readLock(dir);
    const holder = lock ? `process ${lock.pid}${lock.url ? ` at ${lock.url}` : ''}` : 'another process';
    throw storageLocked.because(error, dir, holder);
  }
}

/** A file that marks a catalogue that has lost records. */
const DAMAGED_MARKER = 'damaged';

/**
 * LevelDB drops unreadable parts of its log and reports this only in its file LOG. The tiles of lost records would look like
 * leftovers of an interrupted ingest and be removed, so the folder is not used until somebody has examined it.
 */
async function refuseLostRecords(dir: string, catalogue: Catalogue): Promise<void> {
  const log = await readText(join(dir, 'catalogue', 'LOG'));
  const lost = log?.split('\n').find((line) => /dropping \d+ bytes|Corruption:/.test(line));
  if (lost === undefined) return;
  await catalogue.close();
  throw await markDamaged(dir, lost);
}

async function markDamaged(dir: string, reason: string): Promise<TilewrightError> {
  const marker = join(dir, DAMAGED_MARKER);
  await onDisk(dir, () => writeFileDurably(marker, `${reason}\n`));
  return storageDamaged(dir, marker);
}

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
  if (typeof format !== 'number' || !READABLE_FORMATS.includes(format)) throw storageFormat(file, { format });
  if (typeof id !== 'string' || typeof created !== 'string')
    throw storageFormat(file, { damage: 'it has no id or no date of creation' });
  return { id, format, created };
}

/** The folder's identity in the current format, written before anything that an older version would misread. */
async function currentIdentity(dir: string): Promise<NodeIdentity> {
  const existing = await readIdentity(dir);
  if (existing?.format === FORMAT) return existing;
  const { id, created } = existing ?? {
    id: randomBytes(8).toString('hex'),
    created: new Date().toISOString(),
  };
  const node: NodeIdentity = { id, format: FORMAT, created };
  await writeFileDurably(join(dir, 'node.json'), `${JSON.stringify(node, null, 2)}\n`);
  return node;
}

function writeLock(dir: string, info: LockInfo): Promise<void> {
  return writeFileDurably(join(dir, 'lock'), `${JSON.stringify(info)}\n`, 0o600);
}

/** The text of a file; undefined if it does not exist. */
const readText = (file: string) => orIfMissing(readFile(file, 'utf8'), undefined);
