/** Errors of the file system and of LevelDB as errors with stable codes. */
import { messageOf, TilewrightError } from '../../errors.js';
import { storageCorrupt, storageFull, storageIo, storageLocked, storageReadOnly } from '../errors.js';

const DISK_FULL = /No space left on device|Disk quota exceeded/;
const READ_ONLY_DISK = /Read-only file system/;
const NO_PERMISSION = /Permission denied|Operation not permitted/;

/** `tilewright verify` cannot open a damaged catalogue. */
const CATALOGUE_REMEDY =
  'Restore the data folder from a backup, or ingest the scenes into another folder with --data.';

/**
 * The error that a user sees if the file system or LevelDB throws `error` for `dir`. LevelDB reports the errno only in its
 * message, and `level` wraps its error as the cause of another one. Other errors are returned unchanged.
 */
export function asStorageError(error: unknown, dir: string): unknown {
  if (error instanceof TilewrightError) return error;
  const chain: { code: string; message: string }[] = [];
  for (let e = error; e instanceof Error; e = e.cause)
    chain.push({ code: String((e as NodeJS.ErrnoException).code ?? ''), message: messageOf(e) });
  const some = (codes: string[], text?: RegExp) =>
    chain.some((e) => codes.includes(e.code) || (e.code.startsWith('LEVEL_') && text?.test(e.message)));

  if (some(['LEVEL_LOCKED'])) return storageLocked.because(error, dir, 'another process');
  if (some(['ENOSPC', 'EDQUOT'], DISK_FULL)) return storageFull.because(error, dir);
  if (some(['EROFS'], READ_ONLY_DISK)) return storageReadOnly.because(error, dir, true);
  if (some(['EACCES', 'EPERM'], NO_PERMISSION)) return storageReadOnly.because(error, dir, false);
  const isMissing = chain.some((e) => e.message.includes('create_if_missing is false'));
  if (isMissing || some(['LEVEL_CORRUPTION'], /Corruption/))
    return storageCorrupt.because(error, 'the catalogue', dir, CATALOGUE_REMEDY);
  const last = chain.at(-1);
  if (last && chain.some((e) => /^(E[A-Z0-9]+|LEVEL_.*)$/.test(e.code)))
    return storageIo.because(error, dir, last.message);
  return error;
}

/** The error of a write that is refused because an earlier write, which failed with `failure`, may have torn the log. */
export function writesStopped(failure: unknown, dir: string): unknown {
  if (!(failure instanceof TilewrightError)) return failure;
  const { code, status, message } = failure;
  const text = `${dir} accepts no writes until the node is started again, because an earlier write failed: ${message}`;
  return new TilewrightError(code, status, text, { cause: failure });
}

/** Runs `work` and converts its errors with `asStorageError`. */
export async function onDisk<T>(dir: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw asStorageError(error, dir);
  }
}

/** True if the file system reports that nothing has this name. */
export function isMissingFile(error: unknown): boolean {
  return ['ENOENT', 'ENOTDIR'].includes(String((error as NodeJS.ErrnoException).code));
}

/** The result of a call of the file system; `fallback` if nothing has its name. */
export async function orIfMissing<T, F>(call: Promise<T>, fallback: F): Promise<T | F> {
  try {
    return await call;
  } catch (error) {
    if (isMissingFile(error)) return fallback;
    throw error;
  }
}
