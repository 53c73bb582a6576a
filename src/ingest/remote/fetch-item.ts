/**
 * Fetches the headers of the files of a STAC Item into a folder that ingest reads like an Item on the disk. Each file has the size of the
 * remote one and holes in place of the bytes that were not read, so that all offsets in it are right.
 */
import { type FileHandle, open, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { mapConcurrent } from '../../async/index.js';
import { readTiffFrom } from '../../raster/index.js';
import { type HttpClient, RemoteFile, type RemoteItem, withoutSecrets } from '../../remote/index.js';
import { chooseAssets } from './choose-item-assets.js';

/** The files of an Item by the path of their copies. */
export type RemoteFiles = Map<string, RemoteFile>;

const CONCURRENCY = 8;

export interface FetchedItem {
  folder: string;
  files: RemoteFiles;
}

/** `assets`: see `chooseAssets`. Throws TW_REMOTE_..., TW_RASTER_... and TW_INGEST_MISSING_ASSET. */
export async function fetchItem(
  client: HttpClient,
  item: RemoteItem,
  { folder, assets, signal }: { folder: string; assets?: readonly string[]; signal?: AbortSignal },
): Promise<FetchedItem> {
  const chosen = chooseAssets(item, assets);
  const files: RemoteFiles = new Map();
  await mapConcurrent([...chosen.entries()], CONCURRENCY, async ([i, { url }]) => {
    const path = join(folder, localName(i));
    files.set(path, await fetchHeader(client, url, path, signal));
  });
  const local = chosen.map(({ key, asset }, i) => [key, { ...asset, href: `./${localName(i)}` }]);
  const document = {
    ...{ type: 'Feature', stac_version: '1.0.0', ...item.document },
    links: [],
    assets: Object.fromEntries(local),
  };
  await writeFile(join(folder, 'item.json'), JSON.stringify(document));
  return { folder, files };
}

/** Products are recognised by the names of their files, which must not happen here. */
const localName = (index: number) => `asset-${index}.tif`;

/** Reads what opening the file needs, and writes it to the same place of the copy. */
async function fetchHeader(
  client: HttpClient,
  url: string,
  path: string,
  signal?: AbortSignal,
): Promise<RemoteFile> {
  const file = await RemoteFile.open(client, url, signal);
  const copy = await open(path, 'wx');
  try {
    await copy.truncate(file.size);
    await writeFully(copy, file.start, 0);
    const handle = headerReader(file, copy);
    await readTiffFrom({ path: withoutSecrets(url), size: file.size, start: file.start, handle });
    return file;
  } finally {
    await copy.close();
  }
}

/** Reads parts of a remote file that lie in a header, a few of them ahead, and copies them. */
function headerReader(file: RemoteFile, copy: FileHandle) {
  const known: { offset: number; data: Buffer }[] = [{ offset: 0, data: file.start }];
  const find = (from: number, length: number) =>
    known.find(({ offset, data }) => from >= offset && from + length <= offset + data.length);
  return {
    async read(into: Uint8Array, at: number, length: number, position: number) {
      let part = find(position, length);
      if (!part) {
        part = await file.readAhead({ offset: position, bytes: length });
        known.push(part);
        await writeFully(copy, part.data, part.offset);
      }
      into.set(part.data.subarray(position - part.offset, position - part.offset + length), at);
      return { bytesRead: length };
    },
  };
}

export async function writeFully(file: FileHandle, bytes: Uint8Array, position: number): Promise<void> {
  for (let done = 0; done < bytes.length; ) {
    const { bytesWritten } = await file.write(bytes, done, bytes.length - done, position + done);
    done += bytesWritten;
  }
}
