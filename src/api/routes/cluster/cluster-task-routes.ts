/** Tasks of jobs that other nodes lead. */
import type { FastifyInstance } from 'fastify';
import {
  ALL_GATHER_PATH,
  CANCEL_TASK_PATH,
  TASK_PATH,
  type TaskEvent,
  type TaskExecutor,
  type TaskRequest,
  taskErrorEvent,
} from '../../../jobs/index.js';
import { VERSION_SCHEMA } from '../../../storage/index.js';
import { replyWithEvents } from './cluster-event-stream.js';
import { replyWithChecksum } from './cluster-message-reply.js';

/** Limit of messages between the runs of a job, as of answers of nodes: exact sums over hundreds of bands take megabytes. */
const MAX_ALL_GATHER_BYTES = 2 ** 28;

/** The ids of jobs and runs become folder names, so they are checked. Nodes of other versions may send more members. */
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

export async function taskRoutes(server: FastifyInstance, { tasks }: { tasks: TaskExecutor }): Promise<void> {
  const message = (...required: string[]) => ({
    config: { internal: true },
    schema: { hide: true, body: messageSchema(required) },
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
