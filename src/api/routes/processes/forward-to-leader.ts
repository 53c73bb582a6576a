/** Requests for a job that another node leads: that one answers, through this one. */
import { type IncomingMessage, request as open } from 'node:http';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { limitConnectTime, type Peer, sign } from '../../../dht/index.js';
import { homeAway } from '../../../jobs/index.js';
import { baseUrl, requestPath } from '../../http/base-url.js';
import { onGone } from '../../http/on-disconnect.js';
import { DOOR } from '../../plugins/auth.js';
import type { Services } from '../../services.js';

/** Headers that are passed on, of requests and of answers. */
const ASKED = ['accept', 'last-event-id', 'x-request-id'];
const ANSWERED = [
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

interface PassOn {
  /** Where the job has ended it is to be asked of the node that had it, too, if that runs. */
  alsoEnded?: boolean;
  /** Where the node cannot be reached, this one tells what it knows. */
  elseHere?: boolean;
}

/** A hook of routes with the parameter `id`. */
export function passOn({ jobs, cluster }: Services, { alsoEnded = false, elseHere = false }: PassOn = {}) {
  return async (
    request: FastifyRequest<{ Params: { id: string } }>,
    reply: FastifyReply,
  ): Promise<FastifyReply | undefined> => {
    if (!cluster || request.door !== undefined) return undefined;
    const peer = await jobs.homeOf(request.params.id, alsoEnded);
    if (!peer) return undefined;
    let answer: IncomingMessage;
    try {
      answer = await ask(peer, request.params.id, cluster.secret, request, reply);
    } catch (error) {
      if (elseHere) return undefined;
      throw error;
    }
    // This node must not report the end of a job before its own searches find the job's tiles.
    await cluster.cluster.replica.catchUp().catch((error) => {
      answer.destroy();
      throw error;
    });
    for (const name of ANSWERED) {
      const value = answer.headers[name];
      if (value !== undefined) reply.header(name, value);
    }
    return reply.code(answer.statusCode ?? 502).send(answer);
  };
}

/** Throws TW_JOB_HOME_AWAY. */
function ask(
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
    [DOOR]: baseUrl(request),
  };
  for (const name of ASKED) {
    const value = request.headers[name];
    if (value !== undefined) headers[name] = value;
  }
  return new Promise((resolve, reject) => {
    const sent = open(new URL(path, url), { method, agent: false, headers });
    limitConnectTime(sent, CONNECT_TIMEOUT_MS);
    onGone(reply, () => sent.destroy());
    sent.once('response', resolve);
    // After the answer has begun, its reader sees what goes wrong.
    sent.on('error', (error) => reject(homeAway.because(error, job, id)));
    sent.end();
  });
}
