import type { JobRecord } from '../storage/index.js';
import { jobNotEnded, nothingFailed, uploadDeleted } from './errors.js';
import type { Process } from './job-process.js';
import { hasEnded } from './job-records.js';
import type { JobService } from './job-service.js';

/**
 * Starts a job for the failed inputs of an ended job; `terms` may change the prepared inputs. Throws TW_JOB_NOT_FOUND,
 * TW_JOB_NOT_ENDED, TW_JOB_NOTHING_FAILED, TW_JOB_UPLOAD_GONE and the errors of `JobService.start`.
 */
export async function retryJob(
  jobs: JobService,
  id: string,
  process: Process,
  terms: (given: unknown) => unknown = (given) => given,
): Promise<JobRecord> {
  const job = await jobs.get(id);
  if (!hasEnded(job)) throw jobNotEnded(id, job.status);
  const failedPart = async (inputs: unknown) =>
    job.status === 'successful'
      ? process.retryInputs?.(inputs, job.results)
      : process.repeatInputs
        ? process.repeatInputs(inputs, id)
        : inputs;
  const inputs = await failedPart(job.inputs);
  if (inputs === null || inputs === undefined) throw nothingFailed(id);
  if (job.uploads) throw uploadDeleted(id);
  const given = terms(job.given === undefined ? inputs : await failedPart(job.given));
  const { resultOptions } = job;
  return jobs.start(process, inputs, {
    given: given === inputs ? undefined : given,
    resultOptions,
    retryOf: job,
  });
}
