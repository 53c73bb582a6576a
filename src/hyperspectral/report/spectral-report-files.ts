import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { ConcludeContext } from '../../jobs/index.js';
import { asStorageError, type Storage } from '../../storage/index.js';

/** Writes result files of a job, by name. Throws the errors of the data folder. */
export async function writeFiles(
  storage: Storage,
  job: Pick<ConcludeContext, 'id' | 'file'>,
  files: Record<string, string | Uint8Array>,
): Promise<void> {
  const folder = await storage.results.makeFolder(job.id);
  for (const [name, content] of Object.entries(files)) {
    const path = join(folder, name);
    await writeFile(path, content).catch((error) => {
      throw asStorageError(error, path);
    });
    await job.file(name);
  }
}
