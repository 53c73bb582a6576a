import { type Storage, type VerifyOptions, type VerifyReport, verify } from '../storage/index.js';
import type { Process } from './job-process.js';

/** Problems that are logged; the results contain more of them. */
const MAX_LOGGED = 100;

function verdict(problems: number): string {
  if (problems === 0) return 'no problems found';
  return problems === 1
    ? '1 problem: a part of the store is damaged'
    : `${problems} problems: parts of the store are damaged`;
}

/** Verifies the store as a job, so that a server that has the folder open can do it. */
export function verifyProcess(storage: Storage, options: VerifyOptions = {}): Process {
  return {
    id: 'verify',
    title: 'Verify the store',
    description:
      'Checks that every record has its files and that every checksum matches, and lists orphaned files.',
    inputs: { type: 'object', additionalProperties: false, properties: {} },
    resumable: true,
    run: async (_inputs, job): Promise<VerifyReport> => {
      const onProgress = ({ tiles }: { tiles: number }) => {
        job.signal.throwIfAborted();
        job.progress({ total: storage.index.size, done: tiles });
      };
      const report = await verify(storage, onProgress, options);
      const { problems, problemCount } = report;
      for (const { kind, what } of problems.slice(0, MAX_LOGGED)) job.log('error', `${kind}: ${what}`);
      job.message(verdict(problemCount));
      return report;
    },
  };
}
