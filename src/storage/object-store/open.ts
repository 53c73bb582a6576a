/** Opens a tile store by its URL. */
import { realpath } from 'node:fs/promises';
import { basename, dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { storeBadUrl, storeInDataFolder } from '../errors.js';
import { isObjectName } from '../files/names.js';
import { isMissingFile } from './fs-errors.js';
import { FsStore } from './fs-store.js';
import type { ObjectStore } from './object-store.js';
import type { S3Options } from './s3-client.js';

/** https://docs.aws.amazon.com/AmazonS3/latest/userguide/bucketnamingrules.html */
const BUCKET = /^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/;

/** S3 takes keys of up to 1024 bytes, names of objects up to 800. */
const MAX_PREFIX_LENGTH = 200;

type StoreLocation = { folder: string } | { bucket: string; prefix: string };

/**
 * Opens `file:///mount/folder`, which must exist, or `s3://bucket/prefix`. Of S3, endpoint, region and credentials come
 * from where the AWS SDK looks for them: AWS_ENDPOINT_URL_S3, AWS_REGION, AWS_ACCESS_KEY_ID, profiles, the instance.
 * Throws TW_STORE_BAD_URL, and TW_STORE_ errors of the folder; a bucket is first asked by the first operation.
 */
export async function openObjectStore(url: string, options: S3Options = {}): Promise<ObjectStore> {
  const place = parseLocation(url);
  if ('folder' in place) return FsStore.open(place.folder);
  // The SDK takes long to load, so it is loaded by those who need it. It also warns of Node versions, which is for us to do.
  process.env.AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED ??= 'true';
  const { S3Store } = await import('./s3-store.js');
  return S3Store.open(place.bucket, place.prefix, options);
}

/**
 * To be asked before a data folder is opened whose files are a cache of the store: it removes them to make room, and would remove the
 * store's. Symbolic links are followed. Throws TW_STORE_IN_DATA_FOLDER where the store is the folder, or one is within the other.
 */
export async function requireDisjoint(dir: string, url: string): Promise<void> {
  const place = parseLocation(url);
  if (!('folder' in place)) return;
  const [data, store] = await Promise.all([realPathOf(resolve(dir)), realPathOf(place.folder)]);
  if (isAtOrBelow(data, store) || isAtOrBelow(store, data)) throw storeInDataFolder(url, dir);
}

/** Of a path whose end is not made yet, too. */
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

/** Credentials that somebody has put into a URL must not get into a log. */
const redactUrl = (text: string) => (/[@?]/.test(text) ? `${text.split(':')[0]}:...` : JSON.stringify(text));
