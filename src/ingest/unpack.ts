/**
 * Unpacks untrusted zip, tar and tar.gz files, and rasters compressed with gzip. Entries are streamed to disk. An archive is
 * refused completely if an entry could leave the folder, fill the disk or hide another entry.
 */
import { constants, createReadStream, createWriteStream } from 'node:fs';
import { mkdir, open as openFile, readdir, rm, stat } from 'node:fs/promises';
import { basename, dirname, join, parse } from 'node:path';
import { pipeline as connect } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { crc32, createGunzip, gunzipSync, constants as zlib } from 'node:zlib';
import type { Entry } from 'yauzl';
import { messageOf, TilewrightError } from '../errors.js';
import { detectFileType, readStart, SIGNATURE_BYTES } from '../raster/index.js';
import { asStorageError, type DiskReserve } from '../storage/index.js';
import {
  archiveBroken,
  archiveEncrypted,
  archiveLink,
  archiveName,
  archiveTooLarge,
  archiveTwice,
  archiveUnknown,
} from './errors.js';

type ArchiveKind = 'zip' | 'tar' | 'tar.gz' | 'raster.gz';

interface UnpackOptions {
  /** Reserve of the disk with the folder, checked for the declared size and for every byte written. */
  reserve: DiskReserve;
  maxEntries?: number;
  signal?: AbortSignal;
}

const MAX_ENTRIES = 100_000;
/** An archive that unpacks to more than this many times its size is treated as a bomb; rasters are far below. */
const MAX_RATIO = 200;
/** Size up to which any ratio is allowed, bytes: empty rasters compress well. */
const MIN_BYTES_FOR_RATIO = 10e6;
/** Limits of a path and of one name in it, bytes: those of file systems. */
const MAX_NAME_BYTES = 1024;
const MAX_NAME_PART_BYTES = 255;
const MAX_DEPTH = 32;

const TAR_BLOCK_BYTES = 512;

/** Compressed bytes that contain the first bytes of the unpacked file; they unpack to at most 4 MB. */
const GZIP_START_BYTES = 4096;

/** The type of an archive by its first bytes, and for gzip by the first bytes of the unpacked file; null for other files. */
async function archiveKind(path: string): Promise<ArchiveKind | null> {
  const file = await openFile(path, 'r');
  try {
    const start = await readStart(file, GZIP_START_BYTES);
    const kind = detectFileType(start.subarray(0, SIGNATURE_BYTES));
    if (kind === 'gzip') return gzipKind(path, start);
    return kind === 'zip' || kind === 'tar' ? kind : null;
  } finally {
    await file.close();
  }
}

/** Throws TW_INGEST_ARCHIVE_BROKEN if the unpacked file is neither a tar archive nor a raster. */
function gzipKind(path: string, start: Buffer): ArchiveKind {
  const unpacked = gunzipSync(start, { finishFlush: zlib.Z_SYNC_FLUSH }).subarray(0, SIGNATURE_BYTES);
  if (unpacked.length === 0) throw archiveBroken(path, `its first ${start.length} bytes unpack to nothing`);
  const kind = detectFileType(unpacked);
  // A tar archive without files starts with zeros.
  if (kind === 'tar' || unpacked.every((byte) => byte === 0)) return 'tar.gz';
  if (kind === null || kind === 'zip' || kind === 'gzip')
    throw archiveBroken(path, 'it unpacks to neither a tar archive nor a raster file');
  return 'raster.gz';
}

/**
 * Unpacks an archive into `folder`, which must be empty or missing. Returns the paths of its files relative to the folder, with
 * `/`, in the order of the archive. If it fails or is aborted, the folder is removed with its
 * contents. Archives inside the archive are not unpacked. Throws TW_INGEST_ARCHIVE_..., TW_STORAGE_DISK_LOW and _FULL.
 */
export async function unpackArchive(path: string, folder: string, options: UnpackOptions): Promise<string[]> {
  const { reserve, maxEntries = MAX_ENTRIES, signal = new AbortController().signal } = options;
  signal.throwIfAborted();
  const kind = await archiveKind(path).catch((error) => {
    throw asArchiveError(error, path, path);
  });
  if (!kind) throw archiveUnknown(path);
  await mkdir(folder, { recursive: true });
  // The folder is removed on failure, so it must not hold other files.
  if ((await readdir(folder)).length > 0) throw new Error(`${folder} is not empty`);
  const budget = new UnpackBudget(path, (await stat(path)).size, reserve, maxEntries);
  const target = new UnpackFolder(path, folder, budget, signal);
  try {
    if (kind === 'zip') await unpackZip(path, target, budget);
    else if (kind === 'raster.gz') await unpackRaster(path, target);
    else await unpackTar(path, kind, target, budget, signal);
    return target.files;
  } catch (error) {
    await rm(folder, { recursive: true, force: true });
    throw signal.aborted ? signal.reason : asArchiveError(error, path, folder);
  }
}

async function unpackZip(path: string, target: UnpackFolder, budget: UnpackBudget): Promise<void> {
  const { getFileNameLowLevel, openPromise } = await import('yauzl');
  const zip = await openPromise(path, { decodeStrings: false });
  try {
    budget.requireEntries(zip.entryCount);
    for await (const entry of zip.eachEntry()) {
      // Declared as string; without decoding it is the bytes of the name.
      const raw = entry.fileName as unknown as Buffer;
      const name = getFileNameLowLevel(entry.generalPurposeBitFlag, raw, entry.extraFields, true);
      budget.entry();
      if (entry.isEncrypted()) throw archiveEncrypted(path, name);
      const kind = zipEntryKind(entry, name);
      if (kind === 'folder') await target.folder(name);
      else if (kind !== 'file') throw archiveLink(path, name, kind);
      else {
        await budget.require(entry.uncompressedSize);
        const crc = await target.file(name, () => zip.openReadStreamPromise(entry));
        if (crc !== entry.crc32)
          throw archiveBroken(path, `the checksum of ${JSON.stringify(name)} does not fit`);
      }
    }
  } finally {
    zip.close();
  }
}

const { S_IFMT, S_IFREG, S_IFDIR, S_IFLNK } = constants;
const UNIX_HOST = 3;

/** APPNOTE 4.4.2 and 4.4.15: archives made on Unix hold the file's mode in the upper half of the external attributes. */
function zipEntryKind(entry: Entry, name: string): string {
  const type = entry.versionMadeBy >> 8 === UNIX_HOST ? (entry.externalFileAttributes >>> 16) & S_IFMT : 0;
  if (type === S_IFLNK) return 'symlink';
  if (type !== 0 && type !== S_IFREG && type !== S_IFDIR) return 'device';
  return name.endsWith('/') || type === S_IFDIR ? 'folder' : 'file';
}

/** The file keeps the name of the compressed one without `.gz`, because file names hold dates and ids. */
async function unpackRaster(path: string, target: UnpackFolder): Promise<void> {
  const name = basename(path).replace(/(?<=.)\.gz$/i, '');
  // The target limits the bytes, and receives an error of either stream from the last one.
  await target.file(name, async () => connect(createReadStream(path), createGunzip(), () => {}));
}

async function unpackTar(
  path: string,
  kind: 'tar' | 'tar.gz',
  target: UnpackFolder,
  budget: UnpackBudget,
  signal: AbortSignal,
): Promise<void> {
  const { extract } = await import('tar-stream');
  const tar = extract();
  let streamed = 0;
  let entriesEnd = 0;
  const watch = async function* (chunks: AsyncIterable<Buffer>) {
    for await (const chunk of chunks) {
      streamed += chunk.length;
      budget.stream(chunk.length);
      yield chunk;
    }
  };
  const source = createReadStream(path, { highWaterMark: 1 << 18 });
  const feed =
    kind === 'tar'
      ? pipeline(source, watch, tar, { signal })
      : pipeline(source, createGunzip(), watch, tar, { signal });
  const take = async () => {
    for await (const entry of tar) {
      const { name, type, size = 0 } = entry.header;
      budget.entry();
      if (type === 'directory') await target.folder(name);
      else if (type !== 'file' && type !== 'contiguous-file')
        throw archiveLink(path, name, type ?? 'thing of an unknown kind');
      else {
        await budget.require(size);
        await target.file(name, async () => entry as AsyncIterable<Uint8Array>);
      }
      const padded = type === 'directory' ? 0 : Math.ceil(size / TAR_BLOCK_BYTES) * TAR_BLOCK_BYTES;
      entriesEnd = entry.offset + TAR_BLOCK_BYTES + padded;
      entry.resume();
    }
  };
  const ends = await Promise.allSettled([take(), feed]);
  const errors = ends.flatMap((result) => (result.status === 'rejected' ? [result.reason] : []));
  // If one side fails, the other only reports that the stream was closed early.
  const cause = errors.find((error) => error instanceof TilewrightError) ?? errors.at(-1);
  if (cause !== undefined) throw cause;
  // A tar ends with blocks of zeros. They are missing if it was cut off between two entries.
  if (streamed < entriesEnd + TAR_BLOCK_BYTES) throw archiveBroken(path, 'its end is missing');
}

/** The remaining budget of one archive. `require` checks declared sizes, `spend` counts actual bytes. */
class UnpackBudget {
  private bytes: number;
  private streamed: number;
  private entries = 0;
  constructor(
    private readonly path: string,
    archiveBytes: number,
    private readonly reserve: DiskReserve,
    private readonly maxEntries: number,
  ) {
    this.bytes = Math.max(MIN_BYTES_FOR_RATIO, MAX_RATIO * archiveBytes);
    this.streamed = this.bytes + maxEntries * 4 * TAR_BLOCK_BYTES;
  }

  entry(): void {
    this.requireEntries(++this.entries);
  }

  requireEntries(count: number): void {
    if (count > this.maxEntries)
      throw archiveTooLarge(this.path, `it has more than ${this.maxEntries} entries`);
  }

  async require(bytes: number): Promise<void> {
    this.requireRoom(bytes, this.bytes);
    await this.reserve.require(bytes);
  }

  async spend(bytes: number): Promise<void> {
    this.requireRoom(bytes, this.bytes);
    this.bytes -= bytes;
    await this.reserve.check(bytes);
  }

  /** Limit of a tar stream, bytes: its files, and up to four blocks of header and padding for each entry. */
  stream(bytes: number): void {
    this.requireRoom(bytes, this.streamed);
    this.streamed -= bytes;
  }

  private requireRoom(bytes: number, room: number): void {
    if (bytes > room)
      throw archiveTooLarge(this.path, `its files have more than ${MAX_RATIO} times its size`);
  }
}

/** The destination folder. Invariant: every path below it consists of checked names, and none is a link. */
class UnpackFolder {
  readonly files: string[] = [];

  constructor(
    private readonly archive: string,
    private readonly root: string,
    private readonly budget: UnpackBudget,
    private readonly signal: AbortSignal,
  ) {}

  async folder(name: string): Promise<void> {
    const path = this.pathOf(name);
    await this.rejectDuplicate(name, () => mkdir(join(this.root, path), { recursive: true }));
  }

  /** Writes one file and returns the CRC-32 of its bytes. Calls `open` after it has created the file. */
  async file(name: string, open: () => Promise<AsyncIterable<Uint8Array>>): Promise<number> {
    const path = this.pathOf(name);
    const file = join(this.root, path);
    const budget = this.budget;
    let crc = 0;
    const count = async function* (chunks: AsyncIterable<Uint8Array>) {
      for await (const chunk of chunks) {
        await budget.spend(chunk.length);
        crc = crc32(chunk, crc);
        yield chunk;
      }
    };
    await this.rejectDuplicate(name, async () => {
      await mkdir(dirname(file), { recursive: true });
      await pipeline(await open(), count, createWriteStream(file, { flags: 'wx' }), { signal: this.signal });
    });
    this.files.push(path);
    return crc;
  }

  /** The file system decides whether a name exists, because it knows whether `a` and `A` are the same. */
  private async rejectDuplicate(name: string, work: () => Promise<unknown>): Promise<void> {
    try {
      await work();
    } catch (error) {
      if (!['EEXIST', 'ENOTDIR', 'EISDIR'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error;
      throw archiveTwice.because(error, this.archive, name);
    }
  }

  /** A name as a path below the root; '' for the root itself. Throws TW_INGEST_ARCHIVE_NAME. */
  private pathOf(name: string): string {
    const refuse = (reason: string) => archiveName(this.archive, name, reason);
    if (name.includes('\0')) throw refuse('it contains a zero byte');
    if (name.includes('\\')) throw refuse('it contains a backslash');
    if (name.startsWith('/') || /^[A-Za-z]:/.test(name)) throw refuse('it is an absolute path');
    const parts = name.split('/').filter((part) => part !== '' && part !== '.');
    if (parts.includes('..')) throw refuse('it leads out of the folder');
    if (
      Buffer.byteLength(name) > MAX_NAME_BYTES ||
      parts.some((part) => Buffer.byteLength(part) > MAX_NAME_PART_BYTES)
    )
      throw refuse('it is too long');
    if (parts.length > MAX_DEPTH) throw refuse(`it is more than ${MAX_DEPTH} folders deep`);
    return parts.join('/');
  }
}

/** Converts errors of the file system to errors of the store, and all other errors to errors of the archive. */
function asArchiveError(error: unknown, path: string, folder: string): unknown {
  if (error instanceof TilewrightError) return error;
  if ((error as NodeJS.ErrnoException).syscall !== undefined) return asStorageError(error, folder);
  return archiveBroken.because(error, path, messageOf(error));
}

/**
 * The file for which an archive of the same name and `.tar` was made: `ingest --upload` packs a file with its side files. The
 * side files are then not inputs, and a STAC Item among them describes the file. Undefined for other archives.
 */
export function fileOfArchive(archive: string, files: string[]): string | undefined {
  const name = basename(archive, '.tar');
  if (name === basename(archive) || !files.includes(name)) return undefined;
  const { name: stem, ext } = parse(name);
  const isHeader = ext.toLowerCase() === '.hdr';
  // The image of an ENVI header may have any extension, or none.
  const image = isHeader ? files.find((file) => file !== name && parse(file).name === stem) : name;
  const sideFiles = [name, image, `${image}.msk`, `${image}.aux.xml`, `${stem}.hdr`, `${name}.hdr`];
  const others = files.filter((file) => !sideFiles.includes(file));
  const isItem = (file: string) => /^[^/]+\.json$/i.test(file);
  return others.length === 0 || (others.length === 1 && isItem(others[0])) ? name : undefined;
}
