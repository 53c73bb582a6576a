/**
 * Reading what another node has written: every answer of a node of a cluster says which commit the node has applied, and a request with
 * that number is answered, by whichever node it comes to, when that commit is applied there.
 */
import type { FastifyInstance } from 'fastify';
import { type Cluster, replicaBehind } from '../../dht/index.js';
import { badRequest, notApplied } from '../errors.js';

export const SEQ = 'tilewright-seq';

/** How long a request waits for the commit that it names, ms. */
const PATIENCE = 5000;
/** When it is worth a new try, s. */
const RETRY_AFTER = 1;

/** Called after `controlAccess`: who may not read waits for nothing. A node that is alone shows every write at once. */
export function answerSeq(server: FastifyInstance, { replica }: Cluster): void {
  server.addHook('onRequest', async ({ headers, routeOptions }, reply) => {
    const wanted = headers[SEQ];
    if (wanted === undefined || routeOptions.config.internal || routeOptions.config.open) return;
    if (!/^\d{1,15}$/.test(String(wanted)))
      throw badRequest(`the header Tilewright-Seq is no number: ${wanted}`);
    await replica.waitFor(Number(wanted), PATIENCE).catch((error) => {
      if (!replicaBehind.is(error)) throw error;
      reply.header('retry-after', RETRY_AFTER);
      throw notApplied.because(error, Number(wanted), replica.applied);
    });
  });
  server.addHook('onSend', async ({ routeOptions }, reply) => {
    // It has applied whatever the answer tells of, and its own commit where it has written.
    if (!routeOptions.config.internal && !routeOptions.config.open) reply.header(SEQ, replica.applied);
  });
}
