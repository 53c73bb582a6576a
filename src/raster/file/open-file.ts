import { constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';

/**
 * Opens a regular file for reading. Throws system errors, and an error for pipes and devices: a plain open would wait for a
 * pipe without end.
 */
export async function openFile(path: string): Promise<FileHandle> {
  const file = await open(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
  try {
    const status = await file.stat();
    if (!status.isFile() && !status.isDirectory()) throw new Error('it is a pipe or a device');
    return file;
  } catch (error) {
    await file.close();
    throw error;
  }
}

/**
 * Reads a complete small file. Throws the errors of `openFile`, and an error for a folder or if the file has more than `most`
 * bytes.
 */
export async function readSmallFile(path: string, most: number): Promise<Buffer> {
  const file = await openFile(path);
  try {
    const status = await file.stat();
    if (!status.isFile()) throw new Error('it is a folder');
    if (status.size > most) throw new Error(`it has ${status.size} bytes, and at most ${most} are read`);
    return await file.readFile();
  } finally {
    await file.close();
  }
}
