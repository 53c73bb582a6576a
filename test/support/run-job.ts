/** Runs jobs on a node without a socket. */
import type { TilewrightNode } from '../../src/node.js';

export interface Ended<Results> {
  id: string;
  status: string;
  /** Partial results if the job failed. */
  results: Results;
  error?: { code: string; message: string };
}

/** Posts a request that starts a job, and waits for its end. Throws the answer if the job is refused. */
export async function runRequest<Results>(
  { server, ownerSecret }: TilewrightNode,
  url: string,
  payload: object,
): Promise<Ended<Results>> {
  const headers = { authorization: `Bearer ${ownerSecret}` };
  const answer = await server.inject({ method: 'POST', url, headers, payload });
  if (answer.statusCode !== 201) throw new Error(answer.body);
  const id: string = answer.json().jobID;
  for (;;) {
    const { status, error, results } = (await server.inject(`/jobs/${id}`)).json();
    if (status === 'failed') return { id, status, error, results };
    if (status === 'successful')
      return { id, status, results: (await server.inject(`/jobs/${id}/results`)).json() };
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
}

export const runJob = <Results>(
  node: TilewrightNode,
  process: string,
  inputs: object,
): Promise<Ended<Results>> => runRequest(node, `/processes/${process}/execution`, { inputs });
