/** Runs analyses as jobs of a node that is alone. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { TilewrightNode } from '../../src/node.js';

export interface Ended<Results> {
  id: string;
  status: string;
  results: Results;
  error?: { code: string; message: string };
}

/** Runs a job to its end. Throws the answer if the job is refused. */
export async function runJob<Results>(
  node: TilewrightNode,
  process: string,
  inputs: object,
): Promise<Ended<Results>> {
  const headers = { authorization: `Bearer ${node.ownerSecret}` };
  const url = `/processes/${process}/execution`;
  const answer = await node.server.inject({ method: 'POST', url, headers, payload: { inputs } });
  if (answer.statusCode !== 201) throw new Error(answer.body);
  const id = answer.json().jobID;
  for (;;) {
    const job = (await node.server.inject(`/jobs/${id}`)).json();
    if (job.status === 'failed') return { id, ...job };
    if (job.status === 'successful') {
      const results = (await node.server.inject(`/jobs/${id}/results`)).json();
      return { id, status: job.status, results };
    }
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

/** The numbers of a NumPy file of f64. */
export async function matrixOf(node: TilewrightNode, job: string, name: string): Promise<Float64Array> {
  const bytes = await readFile(join(await node.storage.resultsFolder(job), name));
  return new Float64Array(bytes.buffer.slice(bytes.byteOffset + 10 + bytes.readUInt16LE(8)));
}
