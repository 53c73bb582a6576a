import { constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';

/**
 * Opens a regular file to read. Throws what the system says, and an error for pipes and devices: opened plainly, a pipe would be
 * waited for without end.
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
