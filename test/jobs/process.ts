/** Processes for tests: each is one function. */
import type { JobContext, LocalJobService, Process, StartOptions } from '../../src/jobs/index.js';
import type { JobRecord } from '../../src/storage/index.js';

export type Work = (context: JobContext, inputs: unknown) => Promise<unknown>;

export function process(work: Work, more: Partial<Process> = {}): Process {
  return {
    id: 'fill',
    title: 'Fill',
    description: 'Fills.',
    inputs: { type: 'object' },
    run: (inputs, context) => work(context, inputs),
    ...more,
  };
}

export function startWork(
  jobs: LocalJobService,
  inputs: unknown,
  work: Work,
  options?: StartOptions,
): Promise<JobRecord> {
  return jobs.start(process(work), inputs, options);
}

/** Work that ends when the test ends it, or with the reason of the signal. */
export function gate() {
  let open = (_results: unknown) => {};
  let started = () => {};
  const running = new Promise<void>((resolve) => {
    started = resolve;
  });
  const work: Work = ({ signal }) =>
    new Promise<unknown>((resolve, reject) => {
      open = resolve;
      signal.addEventListener('abort', () => reject(signal.reason));
      started();
    });
  return { work, running, open: (results: unknown) => open(results) };
}
