/** The duration that a job reports: from its first start to its end, in its status and in its results. */
import assert from 'node:assert/strict';

interface Status {
  started: string;
  finished: string;
}

/**
 * Checks the responses of `GET /jobs/{id}` and `/jobs/{id}/results` for a job that has ended. `started` is its start time as reported
 * before it was interrupted.
 */
export function checkDuration(job: Status, results: { seconds: number }, started: string): void {
  assert.equal(job.started, started);
  assert.equal(results.seconds, (Date.parse(job.finished) - Date.parse(started)) / 1000);
}
