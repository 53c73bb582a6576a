/** Writing files so that they are there after a power cut: bytes, then name, then the folder that holds the name. */
import { mkdir, open, rename } from 'node:fs/promises';
import { dirname } from 'node:path';

/** Runs `work` for each item, at most `limit` at a time. Stops starting new ones at the first error. */
export async function eachLimited<T>(
  items: Iterable<T>,
  limit: number,
  work: (item: T) => Promise<void>,
): Promise<void> {
  const rest = items[Symbol.iterator]();
  let failed = false;
  const lane = async () => {
    for (let next = rest.next(); !next.done && !failed; next = rest.next()) {
      try {
        await work(next.value);
      } catch (error) {
        failed = true;
        throw error;
      }
    }
  };
  const lanes = await Promise.allSettled(Array.from({ length: limit }, lane));
  for (const result of lanes) if (result.status === 'rejected') throw result.reason;
}

/** Makes the names in a folder durable. */
export async function fsyncFolder(path: string): Promise<void> {
  const handle = await open(path, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** Each of these folders once, those that have been removed meanwhile left out. */
export async function fsyncFolders(paths: Iterable<string>): Promise<void> {
  await eachLimited(new Set(paths), 4, async (path) => {
    try {
      await fsyncFolder(path);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    }
  });
}

/** Writes a new file and waits until its bytes are on disk. Its name is durable after `fsyncFolder` of its folder. */
export async function writeSynced(path: string, bytes: Uint8Array | string, mode = 0o644): Promise<void> {
  const handle = await open(path, 'w', mode);
  try {
    await handle.writeFile(bytes);
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** Writes or replaces a file as a whole: after a crash at any moment there is the old one or the new one. */
export async function writeFileDurably(
  path: string,
  bytes: Uint8Array | string,
  mode = 0o644,
): Promise<void> {
  const folder = dirname(path);
  await mkdir(folder, { recursive: true });
  await writeSynced(`${path}.tmp`, bytes, mode);
  await rename(`${path}.tmp`, path);
  await fsyncFolder(folder);
}
