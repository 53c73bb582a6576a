/** Forwards requests for a job to the node that leads it. */
import { type IncomingMessage, request as open } from 'node:http';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { limitConnectTime, type Peer, sign } from '../../../dht/index.js';
import { leaderUnavailable } from '../../../jobs/index.js';
import type { Services } from '../../api-services.js';
import { baseUrl, onDisconnect, requestPath } from '../../http/index.js';
import { FORWARDED_BASE_URL_HEADER } from '../../plugins/index.js';

/** Headers that are forwarded. */
const FORWARDED_REQUEST_HEADERS = ['accept', 'last-event-id', 'x-request-id'];
const FORWARDED_RESPONSE_HEADERS = [
  'content-type',
  'content-length',
  'cache-control',
  'location',
  'retry-after',
  'x-accel-buffering',
  'content-security-policy',
  'x-content-type-options',
];
const CONNECT_TIMEOUT_MS = 1000;

interface ForwardOptions {
  /** Forwards requests for an ended job too, if its former leader runs. */
  includeEnded?: boolean;
  /** If the leader cannot be reached, this node answers with its own record. */
  fallBackToLocal?: boolean;
}

/** A `preHandler` hook of routes with the parameter `id`. */
export function forwardToLeader(
  { jobs, cluster }: Services,
  { includeEnded = false, fallBackToLocal = false }: ForwardOptions = {},
) {
  return async (
    request: FastifyRequest<{ Params: { id: string } }>,
    reply: FastifyReply,
  ): Promise<FastifyReply | undefined> => {
    if (!cluster || request.forwardedBaseUrl !== undefined) return undefined;
    const peer = await jobs.leaderOf(request.params.id, includeEnded);
    if (!peer) return undefined;
    let answer: IncomingMessage;
    try {
      answer = await forwardRequest(peer, request.params.id, cluster.secret, request, reply);
    } catch (error) {
      if (fallBackToLocal) return undefined;
      throw error;
    }
    // This node must not report the end of a job before its own searches find the job's tiles.
    await cluster.cluster.replica.catchUp().catch((error) => {
      answer.destroy();
      throw error;
    });
    for (const name of FORWARDED_RESPONSE_HEADERS) {
      const value = answer.headers[name];
      if (value !== undefined) reply.header(name, value);
    }
    return reply.code(answer.statusCode ?? 502).send(answer);
  };
}

/** Throws TW_JOB_HOME_AWAY. */
function forwardRequest(
  { id, url }: Peer,
  job: string,
  secret: string,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<IncomingMessage> {
  const { method } = request;
  const path = requestPath(request);
  const headers: Record<string, string | string[]> = {
    authorization: sign(secret, { method, path, body: Buffer.alloc(0) }),
    [FORWARDED_BASE_URL_HEADER]: baseUrl(request),
  };
  for (const name of FORWARDED_REQUEST_HEADERS) {
    const value = request.headers[name];
    if (value !== undefined) headers[name] = value;
  }
  return new Promise((resolve, reject) => {
    const sent = open(new URL(path, url), { method, agent: false, headers });
    limitConnectTime(sent, CONNECT_TIMEOUT_MS);
    onDisconnect(reply, () => sent.destroy());
    sent.once('response', resolve);
    // After the answer has begun, errors reach its reader.
    sent.on('error', (error) => reject(leaderUnavailable.because(error, job, id)));
    sent.end();
  });
}
