import { type Storage, type VerifyOptions, type VerifyReport, verify } from '../../storage/index.js';
import type { Process } from './process.js';

/** Problems that the log names; the results have more of them. */
const MAX_LOGGED = 100;

function verdict(problems: number): string {
  if (problems === 0) return 'everything is whole';
  return problems === 1
    ? '1 problem: a part of the store is damaged'
    : `${problems} problems: parts of the store are damaged`;
}

/** Checks the store as a job, so that it can be asked of a server that holds the folder. */
export function verifyProcess(storage: Storage, options: VerifyOptions = {}): Process {
  return {
    id: 'verify',
    title: 'Verify the store',
    description: 'Checks that every record has its files, that every checksum fits, and lists orphans.',
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
