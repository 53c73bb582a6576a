/** Work that other nodes ask this one for: shares of jobs that they lead. */
import { PassThrough } from 'node:stream';
import type { FastifyInstance } from 'fastify';
import { encodeLine, NDJSON_TYPE } from '../../../dht/index.js';
import {
  ALL_GATHER_PATH,
  CANCEL_TASK_PATH,
  jobInterrupted,
  TASK_PATH,
  type TaskEvent,
  type TaskExecutor,
  type TaskRequest,
  taskErrorEvent,
} from '../../../jobs/index.js';
import { VERSION_SCHEMA } from '../../../storage/index.js';
import { onDisconnect } from '../../http/on-disconnect.js';
import { replyWithChecksum } from './reply-with-checksum.js';

/** Limit for messages between the runs of a job: exact sums over hundreds of bands have megabytes. The same as for answers of nodes. */
const MAX_ALL_GATHER_BYTES = 2 ** 28;
/** So often a share tells that it lives, ms. */
const HEARTBEAT_MS = 1000;

/** The ids of jobs and runs become names of folders. Nodes of other versions may send more members. */
const messageSchema = (required: string[]) => ({
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

export async function taskRoutes(
  server: FastifyInstance,
  { shares }: { shares: TaskExecutor },
): Promise<void> {
  const message = (...required: string[]) => ({
    config: { internal: true },
    schema: { hide: true, body: messageSchema(required) },
  });

  const share = message('job', 'run', 'process', 'slots', 'since');
  server.post<{ Body: TaskRequest }>(TASK_PATH, share, async (request, reply) => {
    const { body } = request;
    const { job, process } = body;
    const stopped = new AbortController();
    const lines = new PassThrough();
    const tell = (line: TaskEvent) => {
      if (!lines.destroyed && !lines.writableEnded) lines.write(encodeLine(line));
    };
    const beat = setInterval(() => tell({ beat: true }), HEARTBEAT_MS);
    // The node that leads the job is gone, or cancels the share.
    onDisconnect(reply, () => stopped.abort(jobInterrupted(job)));
    server.log.info({ reqId: request.id, job, process }, 'share of a job accepted');
    void shares
      .run(body, tell, stopped.signal)
      .then(
        (result) => tell({ result }),
        (error) => {
          request.log.info({ job, process, err: error }, 'share of a job not done');
          tell(taskErrorEvent(error));
        },
      )
      .finally(() => {
        clearInterval(beat);
        request.log.info({ job, process }, 'share of a job ended');
        lines.end();
      });
    tell({ beat: true });
    return reply.type(NDJSON_TYPE).send(lines);
  });

  const cancel = message('job', 'run');
  server.post<{ Body: { run: string; job: string } }>(CANCEL_TASK_PATH, cancel, async ({ body }, reply) => {
    return replyWithChecksum(reply, { known: shares.cancel(body.run, body.job) });
  });

  const words = { ...message('run', 'words'), bodyLimit: MAX_ALL_GATHER_BYTES };
  server.post<{ Body: { run: string; words: unknown[] } }>(
    ALL_GATHER_PATH,
    words,
    async ({ body }, reply) => {
      shares.deliverAllGather(body.run, body.words);
      return replyWithChecksum(reply, {});
    },
  );
}
