/** Errors of the file system of a tile store, as errors that a user can act on. */
import { messageOf, TilewrightError } from '../../errors.js';
import { storeDenied, storeFull, storeIo, storeNotFound, storeUnavailable } from '../errors.js';
import { isMissingFile } from '../files/index.js';

const FULL = ['ENOSPC', 'EDQUOT'];
const DENIED = ['EACCES', 'EPERM', 'EROFS'];
/** Codes that NFS, Lustre and FUSE return while their server or network is down. */
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

/** `what` names the object or the operation. Other errors than those of the file system are returned unchanged. */
export function asFsStoreError(error: unknown, folder: string, what: string): unknown {
  if (error instanceof TilewrightError || !(error instanceof Error)) return error;
  const code = String((error as NodeJS.ErrnoException).code ?? '');
  const url = `file://${folder}`;
  if (isMissingFile(error) || code === 'EISDIR') return storeNotFound.because(error, url, `object ${what}`);
  if (FULL.includes(code)) return storeFull.because(error, url);
  if (DENIED.includes(code))
    return storeDenied.because(
      error,
      url,
      `${messageOf(error)}; check that it is mounted for writing, and that the user of this process may write there`,
    );
  if (UNAVAILABLE.includes(code)) return storeUnavailable.because(error, url, folder, messageOf(error));
  return /^E[A-Z0-9]+$/.test(code) ? storeIo.because(error, url, what, messageOf(error)) : error;
}
