/** Makes copies of the files of a STAC Item, or of a single file, in a folder that ingest reads like one on the disk. */
import { open, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { mapConcurrent } from '../../async/index.js';
import { type RemoteFile, type RemoteItem, withoutSecrets } from '../../remote/index.js';
import { catalogAsFile } from '../errors.js';
import { type AssetChoice, chooseAssets } from './choose-item-assets.js';
import type { Licence } from './collection-licence.js';
import { type CopyContext, openRemoteCopy } from './open-remote-copy.js';

/** Files whose parts are still to be read, by the path of their copies. */
export type RemoteFiles = Map<string, RemoteFile>;

const CONCURRENCY = 8;

export interface FetchedFiles {
  /** The input of ingest: a folder with an Item, or a file. */
  input: string;
  files: RemoteFiles;
  /** Addresses of all files by the path of their copies. */
  urls: Map<string, string>;
  /** Bytes of the files that were downloaded as a whole. */
  downloaded: number[];
}

/** Throws TW_REMOTE_..., TW_RASTER_... and TW_INGEST_MISSING_ASSET. */
export async function fetchItem(
  context: CopyContext,
  item: RemoteItem,
  folder: string,
  choice: AssetChoice,
  licence: Licence,
): Promise<FetchedFiles> {
  const chosen = chooseAssets(item, choice);
  const urls = new Map(chosen.map(({ url, extension }, i) => [join(folder, localName(i, extension)), url]));
  const fetched = await fetchAll(context, urls);
  const local = chosen.map(({ key, asset, extension }, i) => [
    key,
    { ...asset, href: `./${localName(i, extension)}` },
  ]);
  const { properties } = item.document;
  const { license, links } = licence;
  const document = {
    ...{ type: 'Feature', stac_version: '1.0.0', ...item.document },
    ...(license !== undefined && { properties: { license, ...(properties as object | undefined) } }),
    links,
    assets: Object.fromEntries(local),
  };
  await writeFile(join(folder, 'item.json'), JSON.stringify(document));
  return { input: folder, urls, ...fetched };
}

/**
 * Fetches a file that no Item describes. Its name stays, because formats are recognised by it. Throws TW_INGEST_CATALOG for a JSON
 * document, and as `fetchItem` does.
 */
export async function fetchFile(context: CopyContext, url: string, folder: string): Promise<FetchedFiles> {
  const input = join(folder, fileName(url));
  const urls = new Map([[input, url]]);
  const fetched = await fetchAll(context, urls);
  if (await isJson(input)) throw catalogAsFile(withoutSecrets(url));
  return { input, urls, ...fetched };
}

/** True if a file begins like a JSON object. No raster does. */
async function isJson(path: string): Promise<boolean> {
  const file = await open(path);
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(64), 0, 64, 0);
    return /^\s*\{\s*("|$)/.test(buffer.toString('latin1', 0, bytesRead));
  } finally {
    await file.close();
  }
}

async function fetchAll(
  context: CopyContext,
  urls: Map<string, string>,
): Promise<Pick<FetchedFiles, 'files' | 'downloaded'>> {
  const files: RemoteFiles = new Map();
  const downloaded: number[] = [];
  await mapConcurrent([...urls], CONCURRENCY, async ([path, url]) => {
    const file = await openRemoteCopy(context, url, path);
    if (typeof file === 'number') downloaded.push(file);
    else files.set(path, file);
  });
  return { files, downloaded };
}

/** Products are recognised by the names of their files, which must not happen to the assets of an Item. */
const localName = (index: number, extension: string) => `asset-${index}.${extension}`;

const MAX_NAME_CHARS = 120;

/** The name at the end of an address, without characters that file systems treat specially. */
function fileName(url: string): string {
  const [name = ''] = new URL(url).pathname.split('/').slice(-1);
  const safe = name.replace(/[^A-Za-z0-9._-]/g, '_').replace(/^\.+/, '');
  return safe.slice(-MAX_NAME_CHARS) || 'scene.tif';
}
