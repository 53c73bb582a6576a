import { type Storage, type VerifyOptions, type VerifyReport, verify } from '../storage/index.js';
import type { Process } from './job-process.js';

/** Maximum number of problems that are written to the log of the job; the results can contain more problems. */
const MAX_LOGGED = 100;

function verdict(problems: number): string {
  if (problems === 0) return 'no problems found';
  return problems === 1
    ? '1 problem: a part of the data is damaged'
    : `${problems} problems: parts of the data are damaged`;
}

/** Verifies the data folder as a job, so that a server that has the folder open can verify it. */
export function verifyProcess(storage: Storage, options: VerifyOptions = {}): Process {
  return {
    id: 'verify',
    title: 'Verify the data folder',
    description:
      'Checks that all files of every record exist and that all checksums match. Lists orphaned files, which belong to no record.',
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
