/** A tile store in a folder: local, or on a mount (NFS, Lustre, CephFS ...) that all nodes of a cluster share. */

import { randomUUID } from 'node:crypto';
import { access, link, readdir, rename, rm, stat, unlink } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Readable } from 'node:stream';
import { pathToFileURL } from 'node:url';
import { mapConcurrent } from '../../async/index.js';
import { messageOf, TilewrightError } from '../../errors.js';
import { isMissingFile, onDisk, orIfMissing } from '../disk.js';
import { storeDenied, storeExists, storeFull, storeIo, storeNotFound, storeUnavailable } from '../errors.js';
import { checkedName, isWord } from '../file-names.js';
import {
  type Chunks,
  checksumFile,
  checksumOf,
  fileChunks,
  fsyncFolders,
  fsyncPath,
  makeMissing,
  pruneEmpty,
  writeFileSynced,
} from '../files.js';
import {
  type Cancellable,
  type Content,
  type CopyOptions,
  concatChunks,
  contentChunks,
  copyFileExclusive,
  type ObjectInfo,
  type ObjectStore,
  type PutOptions,
  type ReadOptions,
  requireChecksum,
  streamOf,
  withChecksum,
} from './object-store.js';

const FULL_CODES = ['ENOSPC', 'EDQUOT'];
const DENIED_CODES = ['EACCES', 'EPERM', 'EROFS'];
/** Codes that NFS, Lustre and FUSE return while their server or network is down. */
const UNAVAILABLE_CODES = [
  'EIO',
  'ESTALE',
  'ETIMEDOUT',
  'ENOTCONN',
  'ECONNABORTED',
  'ECONNREFUSED',
  'EHOSTDOWN',
  'EHOSTUNREACH',
  'ENODEV',
  'ENXIO',
];

/**
 * The error of the file system as one that a user can act on. `what` names the object or the operation. Other errors than those of the file
 * system are returned unchanged.
 */
function asFsStoreError(error: unknown, folder: string, what: string): unknown {
  if (error instanceof TilewrightError || !(error instanceof Error)) return error;
  const code = String((error as NodeJS.ErrnoException).code ?? '');
  const url = `file://${folder}`;
  if (isMissingFile(error) || code === 'EISDIR') return storeNotFound.because(error, url, `object ${what}`);
  if (FULL_CODES.includes(code)) return storeFull.because(error, url);
  if (DENIED_CODES.includes(code))
    return storeDenied.because(
      error,
      url,
      `${messageOf(error)}; check that it is mounted for writing, and that the user of this process may write there`,
    );
  if (UNAVAILABLE_CODES.includes(code)) return storeUnavailable.because(error, url, folder, messageOf(error));
  return /^E[A-Z0-9]+$/.test(code) ? storeIo.because(error, url, what, messageOf(error)) : error;
}

/**
 * Syncs folders for many writers at the same time. Requests that arrive during one round of fsync are collected for the
 * next, which syncs each folder once.
 *
 * Invariant: `sync` resolves only after a round that began after the call, so that round covers everything the caller did.
 */
class GroupFsync {
  private pending = new Set<string>();
  private next: Promise<void> | undefined;
  private last: Promise<void> = Promise.resolve();

  sync(folders: Iterable<string>): Promise<void> {
    for (const folder of folders) this.pending.add(folder);
    this.next ??= this.last.then(() => {
      const round = this.pending;
      this.pending = new Set();
      this.next = undefined;
      const done = fsyncFolders(round);
      // The callers of this round get its errors; the next round runs anyway.
      this.last = done.catch(() => {});
      return done;
    });
    return this.next;
  }
}

/** No object name begins with a dot, so files in this folder are never listed. */
const TEMP_FOLDER = '.tmp';
/** Age from which a temporary file counts as a leftover of a killed process. */
const STALE_TEMP_MS = 86_400_000;
const CONCURRENT_FILES = 16;
/** Another process that deletes the last object of a folder may remove the folder between two attempts. */
const PUBLISH_ATTEMPTS = 10;

/**
 * Invariant: files below the root outside of `.tmp` are complete. An object is written and synced in `.tmp`, then renamed,
 * then all folders above it are synced. `.tmp` is created only when the store is opened: if it is missing later, the mount
 * has gone, and nothing may be written below its mount point or considered deleted.
 */
export class FsStore implements ObjectStore {
  readonly url: string;
  private readonly temporaries: string;
  private readonly folders = new GroupFsync();

  private constructor(private readonly root: string) {
    this.url = pathToFileURL(root).href;
    this.temporaries = join(root, TEMP_FOLDER);
  }

  /** Opens a store in an existing folder, and removes what killed processes have left. */
  static async open(root: string): Promise<FsStore> {
    const store = new FsStore(root);
    try {
      await makeMissing(store.temporaries, root);
      await store.removeLeftovers();
    } catch (error) {
      if (isMissingFile(error))
        throw storeNotFound.because(error, store.url, 'such folder; mount or make it first');
      throw asFsStoreError(error, root, TEMP_FOLDER);
    }
    return store;
  }

  async put(name: string, content: Content, options: PutOptions = {}): Promise<void> {
    const { crc32, signal, ifAbsent = false } = options;
    const path = this.location(name);
    const temporary = join(this.temporaries, randomUUID());
    try {
      signal?.throwIfAborted();
      if (await this.head(name)) return await this.confirmExisting(name, content, options);
      await writeTemporary(temporary, content, signal);
      if (crc32 !== undefined) requireChecksum(await checksumFile(temporary), crc32, name, this.url);
      signal?.throwIfAborted();
      const isNew = await publish(temporary, path, this.root, ifAbsent ? linkNew : rename);
      if (!isNew) {
        await rm(temporary);
        return await this.confirmExisting(name, content, options);
      }
      await this.folders.sync(this.foldersAbove(path));
    } catch (error) {
      // If it cannot be removed now, a later open removes it as a leftover.
      await rm(temporary, { force: true }).catch(() => {});
      throw await this.explainError(error, name);
    }
  }

  /** For a name that exists, perhaps by a process that was killed before it synced the folders. Throws TW_STORE_EXISTS. */
  private async confirmExisting(
    name: string,
    content: Content,
    { crc32, signal }: PutOptions,
  ): Promise<void> {
    const path = this.location(name);
    const sum = await checksumOf(contentChunks(content, signal));
    requireChecksum(sum.crc32, crc32, name, this.url);
    const stored = await checksumOf(withChecksum(fileChunks(path), { signal }, name, this.url));
    if (stored.bytes !== sum.bytes || stored.crc32 !== sum.crc32) throw storeExists(name, this.url);
    await this.folders.sync(this.foldersAbove(path));
  }

  get(name: string, options: ReadOptions = {}): Promise<Buffer> {
    return concatChunks(this.read(name, options));
  }

  stream(name: string, options: ReadOptions = {}): Promise<Readable> {
    return streamOf(this.read(name, options));
  }

  async copyTo(name: string, file: string, { crc32, signal }: CopyOptions = {}): Promise<void> {
    signal?.throwIfAborted();
    await onDisk(dirname(file), async () => {
      await copyFileExclusive(this.location(name), file, () => this.read(name, { signal }));
      if (crc32 !== undefined) requireChecksum(await checksumFile(file), crc32, name, this.url);
    });
  }

  private async *read(name: string, options: ReadOptions): Chunks {
    const path = this.location(name);
    try {
      options.signal?.throwIfAborted();
      yield* withChecksum(fileChunks(path, options.offset, options.length), options, name, this.url);
    } catch (error) {
      throw await this.explainError(error, name);
    }
  }

  async head(name: string, { signal }: Cancellable = {}): Promise<ObjectInfo | undefined> {
    const path = this.location(name);
    try {
      signal?.throwIfAborted();
      return await this.info(path, name);
    } catch (error) {
      throw await this.explainError(error, name);
    }
  }

  private async info(path: string, name: string): Promise<ObjectInfo | undefined> {
    try {
      const info = await stat(path);
      return info.isFile() ? { name, bytes: info.size, modified: info.mtimeMs } : undefined;
    } catch (error) {
      if (!isMissingFile(error)) throw error;
      await this.requireMounted();
      return undefined;
    }
  }

  async *list(prefix: string, { signal }: Cancellable = {}): AsyncGenerator<ObjectInfo> {
    checkedName('start of an object name', prefix);
    try {
      await this.requireMounted();
      yield* this.walk(prefix.slice(0, prefix.lastIndexOf('/') + 1), prefix, signal);
    } catch (error) {
      throw await this.explainError(error, `list of ${prefix}`);
    }
  }

  /** `folder` is empty or ends with `/`. Names of folders are sorted with their `/`, so the order is that of the bytes. */
  private async *walk(folder: string, prefix: string, signal?: AbortSignal): AsyncGenerator<ObjectInfo> {
    const entries = await orIfMissing(readdir(join(this.root, folder), { withFileTypes: true }), []);
    const names = entries
      .filter((entry) => isWord(entry.name) && (entry.isDirectory() || entry.isFile()))
      .map((entry) => folder + entry.name + (entry.isDirectory() ? '/' : ''))
      .filter((name) => name.startsWith(prefix))
      .sort();
    const infos = await mapConcurrent(names, CONCURRENT_FILES, async (name) =>
      name.endsWith('/') ? undefined : this.info(join(this.root, name), name),
    );
    for (const [i, name] of names.entries()) {
      signal?.throwIfAborted();
      if (name.endsWith('/')) yield* this.walk(name, prefix, signal);
      else if (infos[i]) yield infos[i];
    }
  }

  async delete(names: string[], { signal }: Cancellable = {}): Promise<void> {
    const paths = names.map((name) => this.location(name));
    const shrunk = new Set<string>();
    try {
      await mapConcurrent(paths, CONCURRENT_FILES, async (path) => {
        signal?.throwIfAborted();
        await orIfMissing(unlink(path), undefined);
        shrunk.add(await pruneEmpty(dirname(path), this.root));
      });
      await this.folders.sync(shrunk);
    } catch (error) {
      throw await this.explainError(error, 'delete');
    }
  }

  location(name: string): string {
    return join(this.root, checkedName('object name', name));
  }

  close(): void {}

  private foldersAbove(path: string): string[] {
    const above = [this.root];
    for (let at = dirname(path); at !== this.root; at = dirname(at)) above.push(at);
    return above;
  }

  private async removeLeftovers(): Promise<void> {
    for (const entry of await readdir(this.temporaries)) {
      const path = join(this.temporaries, entry);
      const info = await this.info(path, entry);
      if (info && Date.now() - info.modified > STALE_TEMP_MS) await rm(path, { force: true });
    }
  }

  private async requireMounted(): Promise<void> {
    try {
      await access(this.temporaries);
    } catch (error) {
      if (!isMissingFile(error)) throw error;
      throw storeUnavailable.because(
        error,
        this.url,
        this.root,
        'it is not what was opened: it has been unmounted or emptied',
      );
    }
  }

  /** Tells a missing object from a missing mount. */
  private async explainError(error: unknown, what: string): Promise<unknown> {
    try {
      if (isMissingFile(error)) await this.requireMounted();
      return asFsStoreError(error, this.root, what);
    } catch (worse) {
      return asFsStoreError(worse, this.root, what);
    }
  }
}

async function writeTemporary(path: string, content: Content, signal?: AbortSignal): Promise<void> {
  if (content instanceof Uint8Array) return writeFileSynced(path, content);
  await copyFileExclusive(content.file, path, () => contentChunks(content, signal));
  await fsyncPath(path);
}

/** Codes of mounts without hard links. */
const NO_LINKS_CODES = ['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EMLINK'];

/** Gives a file its name if the name is free. Throws EEXIST otherwise, or replaces the file on mounts without hard links. */
async function linkNew(temporary: string, path: string): Promise<void> {
  try {
    await link(temporary, path);
  } catch (error) {
    if (!NO_LINKS_CODES.includes((error as NodeJS.ErrnoException).code ?? '')) throw error;
    return rename(temporary, path);
  }
  await unlink(temporary);
}

/** Gives a file its name by `move`, and creates missing folders above it. False if the name is taken. */
async function publish(
  temporary: string,
  path: string,
  root: string,
  move: (temporary: string, path: string) => Promise<void>,
): Promise<boolean> {
  for (let attempt = 1; ; attempt++)
    try {
      // Nothing may be written in place of a missing mount, so the root is not made.
      if (attempt > 1) await makeMissing(dirname(path), root);
      await move(temporary, path);
      return true;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
      if (!isMissingFile(error) || attempt === PUBLISH_ATTEMPTS) throw error;
    }
}
