/** Requests for a job that another node leads: that one answers, through this one. */
import { type IncomingMessage, request as open } from 'node:http';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { limitConnectTime, type Peer, sign } from '../../../dht/index.js';
import { leaderUnavailable } from '../../../jobs/index.js';
import { baseUrl, requestPath } from '../../http/base-url.js';
import { onDisconnect } from '../../http/on-disconnect.js';
import { FORWARDED_BASE_URL_HEADER } from '../../plugins/auth.js';
import type { Services } from '../../services.js';

/** Headers that are passed on, of requests and of answers. */
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
  /** Where the job has ended it is to be asked of the node that had it, too, if that runs. */
  includeEnded?: boolean;
  /** Where the node cannot be reached, this one tells what it knows. */
  fallBackToLocal?: boolean;
}

/** A hook of routes with the parameter `id`. */
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
    // After the answer has begun, its reader sees what goes wrong.
    sent.on('error', (error) => reject(leaderUnavailable.because(error, job, id)));
    sent.end();
  });
}
