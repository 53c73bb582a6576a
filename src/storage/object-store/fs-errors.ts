/** What the file system says about the folder of a tile store, as errors that a user can act on. */
import { TilewrightError } from '../../errors.js';
import { storeDenied, storeFull, storeIo, storeNotFound, storeUnavailable } from '../errors.js';

const FULL = ['ENOSPC', 'EDQUOT'];
const DENIED = ['EACCES', 'EPERM', 'EROFS'];
/** What NFS, Lustre and FUSE answer while their server or network is away. */
const UNAVAILABLE = [
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

/** Also what a name is that has a file where a folder would have to be. */
export function isMissingFile(error: unknown): boolean {
  return ['ENOENT', 'ENOTDIR'].includes(codeOf(error));
}

function codeOf(error: unknown): string {
  return String((error as NodeJS.ErrnoException).code ?? '');
}

/** `what` names the object or the operation. What the file system has not said is returned as it is. */
export function asFsStoreError(error: unknown, folder: string, what: string): unknown {
  if (error instanceof TilewrightError || !(error instanceof Error)) return error;
  const code = codeOf(error);
  const url = `file://${folder}`;
  if (isMissingFile(error) || code === 'EISDIR') return storeNotFound.because(error, url, `object ${what}`);
  if (FULL.includes(code)) return storeFull.because(error, url);
  if (DENIED.includes(code))
    return storeDenied.because(
      error,
      url,
      `${error.message}; check that it is mounted for writing, and that the user of this process may write there`,
    );
  if (UNAVAILABLE.includes(code)) return storeUnavailable.because(error, url, folder, error.message);
  return /^E[A-Z0-9]+$/.test(code) ? storeIo.because(error, url, what, error.message) : error;
}
