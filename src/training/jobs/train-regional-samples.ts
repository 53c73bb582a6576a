/** The exchange of training patches among the nodes of a region. */
import { join } from 'node:path';
import type { JobContext } from '../../jobs/index.js';
import { asStorageError, type Storage } from '../../storage/index.js';
import { readSampleMessages, type SampleMessage, sharingCells, writeSamples } from '../adaptation/index.js';
import { getModelSpec } from '../models/index.js';

interface Sharing {
  model: string;
  /** Geocodes of all cells of this node that may share patches. */
  cells: string[];
  /** Returns samples of some cells of this node. */
  sample: (cells: ReadonlySet<string>, patches: number) => Promise<SampleMessage[]>;
}

/**
 * Returns the path of a file with the samples of all nodes. Each node keeps its own samples in a file, because a repeated run cannot sample
 * the cells that are complete.
 */
export async function shareSamples(
  { storage }: { storage: Pick<Storage, 'dir' | 'scratch'> },
  job: Pick<JobContext, 'id' | 'allGather'>,
  { model, cells, sample }: Sharing,
): Promise<string> {
  const folder = await storage.scratch.makeForJob(job.id);
  const all = (await job.allGather(cells)).flat();
  const sharing = sharingCells(getModelSpec(model), all);
  const ownFile = join(folder, 'own-samples');
  let own = await readSampleMessages(ownFile);
  if (!own) {
    own = await sample(new Set(sharing.cells), sharing.patches);
    await toDisk(storage, writeSamples(ownFile, own));
  }
  const samples = (await job.allGather(own)).flat();
  // In a fixed order, because the order affects the weights.
  samples.sort((a, b) => (a.cell < b.cell ? -1 : a.cell > b.cell ? 1 : 0));
  const file = join(folder, 'samples');
  await toDisk(storage, writeSamples(file, samples));
  return file;
}

/** Waits for a write to the scratch folder. Throws TW_STORAGE_FULL and the other errors of the disk. */
export async function toDisk<T>({ dir }: Pick<Storage, 'dir'>, write: Promise<T>): Promise<T> {
  try {
    return await write;
  } catch (error) {
    throw asStorageError(error, dir);
  }
}
