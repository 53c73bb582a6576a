/**
 * Messages between nodes: searches, tasks of jobs, parts of scenes, and usage. Messages are signed, and answers have a checksum. The
 * plugin `auth` has checked the signature before the body arrives here.
 */

import type { IncomingMessage } from 'node:http';
import { PassThrough } from 'node:stream';
import { crc32 } from 'node:zlib';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { Semaphore } from '../../async/index.js';
import {
  CHECKSUM_HEADER,
  encodeLine,
  HANDSHAKE_PATH,
  MESSAGE_TYPE,
  NDJSON_TYPE,
  nodeStats,
  OWNER_QUERY_PATH,
  type OwnerRequest,
  readSignedBody,
  STATS_PATH,
  TIME_HEADER,
} from '../../dht/index.js';
import {
  SCENE_PART_PATH,
  SCENE_PART_SCHEMA,
  type ScenePartEvent,
  type ScenePartRequest,
  type ScenePartService,
} from '../../ingest/index.js';
import {
  ALL_GATHER_PATH,
  CANCEL_TASK_PATH,
  jobInterrupted,
  TASK_PATH,
  type TaskEvent,
  type TaskExecutor,
  type TaskRequest,
  taskErrorEvent,
} from '../../jobs/index.js';
import { type ProcessUsage, processUsage } from '../../metrics/index.js';
import { isoTime } from '../../query/index.js';
import { VERSION_SCHEMA } from '../../storage/index.js';
import { COUNT, messageCheck, NUMBER, objectOf, TEXT } from '../../utils/json-schema.js';
import { parseJsonOr } from '../../utils/json-text.js';
import { onDisconnect, untilDisconnected } from '../answers.js';
import { badRequest, bodyTooLarge, clientGone } from '../errors.js';
import type { ClusterService, Services } from '../services.js';

/** Messages contain filters, which are small. */
const MAX_MESSAGE_BYTES = 4 * 2 ** 20;
/** Bytes of bodies that are read at the same time; further ones wait in their sockets. */
const MAX_BODIES_BYTES = 2 ** 29;

/** Nodes of other versions may send more members. */
const querySchema = {
  type: 'object',
  required: ['kind', 'slots', 'seq', 'wait'],
  properties: {
    kind: { type: 'string' },
    slots: { type: 'string' },
    seq: COUNT,
    wait: { type: 'number', minimum: 0 },
  },
};

export async function messageRoutes(
  server: FastifyInstance,
  { cluster, owners, tasks, sceneParts }: ClusterService,
): Promise<void> {
  // Also on refusals, so that the sender learns how far the clocks are apart.
  server.addHook('onSend', async (_request, reply) => {
    reply.header(TIME_HEADER, Date.now());
  });
  server.removeAllContentTypeParsers();
  const memory = new Semaphore(MAX_BODIES_BYTES);
  server.addContentTypeParser(MESSAGE_TYPE, async (request: FastifyRequest, body: IncomingMessage) => {
    const { headers, raw, routeOptions } = request;
    const limit = routeOptions.bodyLimit!;
    const length = Number(headers['content-length']);
    if (length > limit) throw bodyTooLarge(limit, 'JSON');
    const release = await memory.acquire(undefined, length);
    try {
      if (raw.destroyed) throw clientGone();
      const text = (await readSignedBody(headers, body)).toString();
      return parseJsonOr(text, (cause) => badRequest.because(cause, 'the message is not JSON'));
    } finally {
      release();
    }
  });
  const internal = { config: { internal: true }, schema: { hide: true }, bodyLimit: MAX_MESSAGE_BYTES };
  // A node that starts checks that the others accept its messages.
  server.post(HANDSHAKE_PATH, internal, async (_request, reply) => replyWithChecksum(reply, {}));
  server.post<{ Body: OwnerRequest }>(
    OWNER_QUERY_PATH,
    { ...internal, schema: { hide: true, body: querySchema } },
    async ({ body }, reply) => {
      return replyWithChecksum(reply, await owners.handle(body, untilDisconnected(reply)));
    },
  );
  server.post(STATS_PATH, internal, async (_request, reply) =>
    replyWithChecksum(reply, await nodeStats(cluster.replica)),
  );
  server.post(USAGE_PATH, internal, async (_request, reply) => replyWithChecksum(reply, nodeUsage()));
  await taskRoutes(server, { tasks });
  await scenePartRoutes(server, { sceneParts });
}

/** Answers a message of another node, with a checksum. */
function replyWithChecksum(reply: FastifyReply, answer: unknown): FastifyReply {
  const bytes = Buffer.from(JSON.stringify(answer));
  return reply.header(CHECKSUM_HEADER, crc32(bytes)).type('application/json').send(bytes);
}

/** Interval of the events by which the work shows that it is alive. */
const HEARTBEAT_MS = 1000;

/**
 * Answers a message that takes long with the events that `work` sends, and ends the answer after it. The signal is aborted when the other
 * node is gone. `work` must report its errors as events.
 */
function replyWithEvents<Event>(
  reply: FastifyReply,
  job: string,
  work: (send: (event: Event | { beat: true }) => void, stopped: AbortSignal) => Promise<void>,
): FastifyReply {
  const stopped = new AbortController();
  const lines = new PassThrough();
  const send = (event: Event | { beat: true }) => {
    if (!lines.destroyed && !lines.writableEnded) lines.write(encodeLine(event));
  };
  const heartbeat = setInterval(() => send({ beat: true }), HEARTBEAT_MS);
  onDisconnect(reply, () => stopped.abort(jobInterrupted(job)));
  void work(send, stopped.signal).finally(() => {
    clearInterval(heartbeat);
    lines.end();
  });
  send({ beat: true });
  return reply.type(NDJSON_TYPE).send(lines);
}

/** Limit of a request: an archive may send an Item of 20 MB, and the cells of a scene take less than 1 MB. */
const MAX_SCENE_PART_BYTES = 32e6;
/** Minimum interval between progress events. */
const PROGRESS_INTERVAL_MS = 500;

/** Parts of scenes that other nodes ingest. */
async function scenePartRoutes(
  server: FastifyInstance,
  { sceneParts }: { sceneParts: ScenePartService },
): Promise<void> {
  const route = {
    config: { internal: true },
    schema: { hide: true, body: SCENE_PART_SCHEMA },
    bodyLimit: MAX_SCENE_PART_BYTES,
  };
  server.post<{ Body: ScenePartRequest }>(SCENE_PART_PATH, route, async (request, reply) => {
    const { body } = request;
    return replyWithEvents<ScenePartEvent>(reply, body.job, async (send, stopped) => {
      let sentAt = 0;
      const onShare = (share: number) => {
        if (performance.now() - sentAt < PROGRESS_INTERVAL_MS) return;
        sentAt = performance.now();
        send({ share });
      };
      try {
        send({ result: await sceneParts.run(body, onShare, stopped) });
      } catch (error) {
        request.log.info({ job: body.job, scene: body.scene, err: error }, 'part of a scene failed');
        send(taskErrorEvent(error));
      }
    });
  });
}

/** Limit of messages between the runs of a job, as of answers of nodes: exact sums over hundreds of bands take megabytes. */
const MAX_ALL_GATHER_BYTES = 2 ** 28;

/** The ids of jobs and runs become folder names, so they are checked. Nodes of other versions may send more members. */
const taskMessageSchema = (required: string[]) => ({
  type: 'object',
  required,
  properties: {
    job: VERSION_SCHEMA,
    run: VERSION_SCHEMA,
    process: { type: 'string' },
    slots: { type: 'string' },
    since: { type: 'integer', minimum: 0 },
    words: { type: 'array' },
  },
});

/** Tasks of jobs that other nodes lead. */
async function taskRoutes(server: FastifyInstance, { tasks }: { tasks: TaskExecutor }): Promise<void> {
  const message = (...required: string[]) => ({
    config: { internal: true },
    schema: { hide: true, body: taskMessageSchema(required) },
    bodyLimit: MAX_MESSAGE_BYTES,
  });

  const task = message('job', 'run', 'process', 'slots', 'since');
  server.post<{ Body: TaskRequest }>(TASK_PATH, task, async (request, reply) => {
    const { body } = request;
    const { job, process } = body;
    server.log.info({ reqId: request.id, job, process }, 'task of a job accepted');
    return replyWithEvents<TaskEvent>(reply, job, async (send, stopped) => {
      await tasks.run(body, send, stopped).then(
        (result) => send({ result }),
        (error) => {
          request.log.info({ job, process, err: error }, 'task of a job failed');
          send(taskErrorEvent(error));
        },
      );
      request.log.info({ job, process }, 'task of a job ended');
    });
  });

  const cancel = message('job', 'run');
  server.post<{ Body: { run: string; job: string } }>(CANCEL_TASK_PATH, cancel, async ({ body }, reply) => {
    return replyWithChecksum(reply, { known: tasks.cancel(body.run, body.job) });
  });

  const words = { ...message('run', 'words'), bodyLimit: MAX_ALL_GATHER_BYTES };
  server.post<{ Body: { run: string; words: unknown[] } }>(
    ALL_GATHER_PATH,
    words,
    async ({ body }, reply) => {
      tasks.deliverAllGather(body.run, body.words);
      return replyWithChecksum(reply, {});
    },
  );
}

/** The path of the request to another node. */
const USAGE_PATH = '/cluster/internal/usage';

/** A node that does not answer within this time is listed as unanswered. */
const USAGE_TIMEOUT_MS = 1000;
/** A measurement blocks the node for some milliseconds, so requests within this time share one. */
const USAGE_MAX_AGE_MS = 250;

const NETWORK_USAGE = objectOf({ namespace: TEXT, sentBytes: NUMBER, loopbackBytes: NUMBER });
const BOOLEAN = { type: 'boolean' };
const checkUsage = messageCheck(
  objectOf(
    { startedAt: TEXT, cpuSeconds: NUMBER, memoryBytes: NUMBER, includesChildren: BOOLEAN },
    { network: NETWORK_USAGE },
  ),
);

interface NodeUsage extends ProcessUsage {
  /** Start of the server process, when its counters were 0. RFC 3339. */
  startedAt: string;
}

export interface ClusterUsage {
  nodes: ({ id: string } & NodeUsage)[];
  /** Ids of nodes that run and have not answered. */
  unanswered: string[];
}

const startedAt = isoTime(performance.timeOrigin);
let lastUsage: { at: number; usage: NodeUsage } | undefined;

/** Returns the usage of this node, at most a quarter of a second old. */
function nodeUsage(): NodeUsage {
  const now = performance.now();
  if (!lastUsage || now - lastUsage.at > USAGE_MAX_AGE_MS)
    lastUsage = { at: now, usage: { startedAt, ...processUsage() } };
  return lastUsage.usage;
}

/** CPU time, memory and sent bytes of the nodes of a cluster. Each node measures its own. */
export async function clusterUsage({ cluster: service, nodeId }: Services): Promise<ClusterUsage> {
  if (!service) return { nodes: [{ id: nodeId, ...nodeUsage() }], unanswered: [] };
  const { cluster, peers } = service;
  const members = [...cluster.nodes].sort((a, b) => (a.id < b.id ? -1 : 1));
  const answers = await Promise.allSettled(
    members.map(async (member) =>
      member.id === cluster.self
        ? nodeUsage()
        : peers.call<NodeUsage>(member, USAGE_PATH, {}, USAGE_TIMEOUT_MS, checkUsage),
    ),
  );
  return {
    nodes: answers.flatMap((answer, i) =>
      answer.status === 'fulfilled' ? [{ id: members[i]!.id, ...answer.value }] : [],
    ),
    unanswered: answers.flatMap(({ status }, i) => (status === 'rejected' ? [members[i]!.id] : [])),
  };
}
