import assert from 'node:assert/strict';
import type { TilewrightNode } from '../../src/node.js';

/** Runs a process as a job of a node and returns its results; if the job failed, also `failed`, the code of its error. */
export async function runProcess<R extends object>(
  node: TilewrightNode,
  id: string,
  inputs: object,
): Promise<R & { failed?: unknown }> {
  const headers = { authorization: `Bearer ${node.ownerSecret}` };
  const url = `/processes/${id}/execution`;
  const answer = await node.server.inject({ method: 'POST', url, headers, payload: { inputs } });
  assert.equal(answer.statusCode, 201, answer.body);
  return resultsOf(node, answer.json().jobID);
}

/** Waits for the end of a job and returns its results. */
export async function resultsOf<R extends object>(
  node: TilewrightNode,
  jobID: string,
): Promise<R & { failed?: unknown }> {
  for (;;) {
    const job = (await node.server.inject(`/jobs/${jobID}`)).json();
    if (job.status === 'successful') {
      assert.equal(job.progress, 100);
      return (await node.server.inject(`/jobs/${jobID}/results`)).json();
    }
    if (job.status === 'failed') return { ...job.results, failed: job.error.code };
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
