import { type Storage, type VerifyReport, verify } from '../storage/index.js';
import type { Process } from './process.js';

/** Checks the store as a job, so that it can be asked of a server that holds the folder. */
export function verifyProcess(storage: Storage): Process {
  return {
    id: 'verify',
    title: 'Verify the store',
    description: 'Checks that every record has its files, that every checksum fits, and lists orphans.',
    inputs: { type: 'object', additionalProperties: false, properties: {} },
    resumable: true,
    run: (_inputs, job): Promise<VerifyReport> =>
      verify(storage, ({ tiles }) => {
        job.signal.throwIfAborted();
        job.progress({ total: storage.index.size, done: tiles });
      }),
  };
}
