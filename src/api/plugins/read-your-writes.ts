/**
 * Reading what another node has written: every answer of a node of a cluster says which commit the node has applied, and a request with
 * that number is answered, by whichever node it comes to, when that commit is applied there.
 */
import type { FastifyInstance } from 'fastify';
import { type Cluster, replicaBehind } from '../../dht/index.js';
import { badRequest, commitNotApplied } from '../errors.js';

export const SEQUENCE_HEADER = 'tilewright-seq';

/** How long a request waits for the commit that it names, ms. */
const APPLY_TIMEOUT_MS = 5000;
/** When it is worth a new try, s. */
const RETRY_AFTER_SECONDS = 1;

/** Called after `registerAuth`: who may not read waits for nothing. A node that is alone shows every write at once. */
export function registerReadYourWrites(server: FastifyInstance, { replica }: Cluster): void {
  server.addHook('onRequest', async ({ headers, routeOptions }, reply) => {
    const wanted = headers[SEQUENCE_HEADER];
    if (wanted === undefined || routeOptions.config.internal || routeOptions.config.open) return;
    if (!/^\d{1,15}$/.test(String(wanted)))
      throw badRequest(`the header Tilewright-Seq is no number: ${wanted}`);
    await replica.waitForCommit(Number(wanted), APPLY_TIMEOUT_MS).catch((error) => {
      if (!replicaBehind.is(error)) throw error;
      reply.header('retry-after', RETRY_AFTER_SECONDS);
      throw commitNotApplied.because(error, Number(wanted), replica.applied);
    });
  });
  server.addHook('onSend', async ({ routeOptions }, reply) => {
    // It has applied whatever the answer tells of, and its own commit where it has written.
    if (!routeOptions.config.internal && !routeOptions.config.open)
      reply.header(SEQUENCE_HEADER, replica.applied);
  });
}
