/** Opens a tile store by its URL. */
import { realpath } from 'node:fs/promises';
import { basename, dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { isMissingFile } from '../disk.js';
import { storeBadUrl, storeInDataFolder } from '../errors.js';
import { isObjectName } from '../file-names.js';
import { FsStore } from './fs-store.js';
import type { ObjectStore } from './object-store.js';
import type { S3Options } from './s3-client.js';

/** https://docs.aws.amazon.com/AmazonS3/latest/userguide/bucketnamingrules.html */
const BUCKET = /^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/;

/** S3 allows keys of up to 1024 bytes; names of objects have up to 800. */
const MAX_PREFIX_LENGTH = 200;

type StoreLocation = { folder: string } | { bucket: string; prefix: string };

/**
 * Opens `file:///mount/folder`, which must exist, or `s3://bucket/prefix`. For S3, the AWS SDK finds endpoint, region and
 * credentials: AWS_ENDPOINT_URL_S3, AWS_REGION, AWS_ACCESS_KEY_ID, profiles, the instance. Throws TW_STORE_BAD_URL, and the
 * TW_STORE_ errors of a folder; a bucket is first contacted by the first operation.
 */
export async function openObjectStore(url: string, options: S3Options = {}): Promise<ObjectStore> {
  const location = parseLocation(url);
  if ('folder' in location) return FsStore.open(location.folder);
  // The SDK loads slowly, so it is loaded only if needed. Its warnings about Node versions do not concern users of this program.
  process.env.AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED ??= 'true';
  const { S3Store } = await import('./s3-store.js');
  return S3Store.open(location.bucket, location.prefix, options);
}

/**
 * Call this before a data folder is opened whose files are a cache of the store: the cache removes files to make room, and would remove
 * those of the store. Symbolic links are followed. Throws TW_STORE_IN_DATA_FOLDER if both are the same folder, or one is within the other.
 */
export async function requireDisjoint(dir: string, url: string): Promise<void> {
  const location = parseLocation(url);
  if (!('folder' in location)) return;
  const [data, store] = await Promise.all([realPathOf(resolve(dir)), realPathOf(location.folder)]);
  if (isAtOrBelow(data, store) || isAtOrBelow(store, data)) throw storeInDataFolder(url, dir);
}

/** Like `realpath`, also for a path whose last parts do not exist yet. */
async function realPathOf(path: string): Promise<string> {
  try {
    return await realpath(path);
  } catch (error) {
    if (!isMissingFile(error) || dirname(path) === path) throw error;
    return join(await realPathOf(dirname(path)), basename(path));
  }
}

const isAtOrBelow = (path: string, folder: string) => !/^\.\.(\/|$)/.test(relative(folder, path));

function parseLocation(text: string): StoreLocation {
  const [, bucket, prefix = ''] = /^s3:\/\/([^/]*)(?:\/(.*?))?\/?$/.exec(text) ?? [];
  if (bucket !== undefined) return parseBucketLocation(text, bucket, prefix);
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url?.protocol !== 'file:')
    throw storeBadUrl(redactUrl(text), 'it begins with neither file:// nor s3://');
  if (url.host || url.search || url.hash || url.pathname === '/')
    throw storeBadUrl(redactUrl(text), 'it names no folder by its absolute path');
  return { folder: fileURLToPath(url).replace(/\/+$/, '') };
}

function parseBucketLocation(text: string, bucket: string, prefix: string): StoreLocation {
  if (!BUCKET.test(bucket)) throw storeBadUrl(redactUrl(text), 'its bucket has no valid name');
  if (prefix !== '' && (!isObjectName(prefix) || prefix.length > MAX_PREFIX_LENGTH))
    throw storeBadUrl(
      redactUrl(text),
      'its prefix has other characters than letters, digits, ".", "_", "-" and "+", or is too long',
    );
  return { bucket, prefix: prefix && `${prefix}/` };
}

/** Credentials in a URL must not get into a log. */
const redactUrl = (text: string) => (/[@?]/.test(text) ? `${text.split(':')[0]}:...` : JSON.stringify(text));
