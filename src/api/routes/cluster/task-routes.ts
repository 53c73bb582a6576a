/** Work that other nodes ask this one for: shares of jobs that they lead. */
import { PassThrough } from 'node:stream';
import type { FastifyInstance } from 'fastify';
import { LINES_TYPE, lineOf } from '../../../dht/index.js';
import {
  CANCEL_PATH,
  jobInterrupted,
  type ShareLine,
  type ShareRequest,
  type Shares,
  shareError,
  WORDS_PATH,
  WORK_PATH,
} from '../../../jobs/index.js';
import { VERSION_SCHEMA } from '../../../storage/index.js';
import { onGone } from '../../http/on-disconnect.js';
import { sendToNode } from './reply-with-checksum.js';

/** Limit for messages between the runs of a job: exact sums over hundreds of bands have megabytes. The same as for answers of nodes. */
const WORDS_LIMIT = 2 ** 28;
/** So often a share tells that it lives, ms. */
const BEAT = 1000;

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

export async function workRoutes(server: FastifyInstance, { shares }: { shares: Shares }): Promise<void> {
  const message = (...required: string[]) => ({
    config: { internal: true },
    schema: { hide: true, body: messageSchema(required) },
  });

  const share = message('job', 'run', 'process', 'slots', 'since');
  server.post<{ Body: ShareRequest }>(WORK_PATH, share, async (request, reply) => {
    const { body } = request;
    const { job, process } = body;
    const stopped = new AbortController();
    const lines = new PassThrough();
    const tell = (line: ShareLine) => {
      if (!lines.destroyed && !lines.writableEnded) lines.write(lineOf(line));
    };
    const beat = setInterval(() => tell({ beat: true }), BEAT);
    // The node that leads the job is gone, or cancels the share.
    onGone(reply, () => stopped.abort(jobInterrupted(job)));
    server.log.info({ reqId: request.id, job, process }, 'share of a job accepted');
    void shares
      .run(body, tell, stopped.signal)
      .then(
        (result) => tell({ result }),
        (error) => {
          request.log.info({ job, process, err: error }, 'share of a job not done');
          tell(shareError(error));
        },
      )
      .finally(() => {
        clearInterval(beat);
        request.log.info({ job, process }, 'share of a job ended');
        lines.end();
      });
    tell({ beat: true });
    return reply.type(LINES_TYPE).send(lines);
  });

  const cancel = message('job', 'run');
  server.post<{ Body: { run: string; job: string } }>(CANCEL_PATH, cancel, async ({ body }, reply) => {
    return sendToNode(reply, { known: shares.cancel(body.run, body.job) });
  });

  const words = { ...message('run', 'words'), bodyLimit: WORDS_LIMIT };
  server.post<{ Body: { run: string; words: unknown[] } }>(WORDS_PATH, words, async ({ body }, reply) => {
    shares.hear(body.run, body.words);
    return sendToNode(reply, {});
  });
}
