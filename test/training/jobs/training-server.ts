/** Servers that a test kills and starts again. */
import type { TestContext } from 'node:test';
import { kill, until } from '../../jobs/servers.js';
import { atEnd } from '../../support/at-end.js';
import { start } from '../../support/command.js';
import { freePort } from '../../support/s3.js';

/** Environment of servers whose trainings write a checkpoint every tenth of a second. */
export const FREQUENT_CHECKPOINTS = {
  NODE_OPTIONS: `${process.env.NODE_OPTIONS ?? ''} --import=${new URL('./fast-training-clock.js', import.meta.url)}`,
};

/** A server on a data folder that the test can restart, with helpers for requests. */
export async function serverOf(t: TestContext, data: string, env?: NodeJS.ProcessEnv) {
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const ask = async (path: string, init?: RequestInit) => (await fetch(`${url}${path}`, init)).json();
  return {
    ask,
    async serve() {
      const about = ['--data', data, '--port', `${port}`, '--cores', '1', '--reserve', '0'];
      const server = start(['serve', ...about], env);
      atEnd(t, () => kill(server));
      server.stdout?.resume();
      server.stderr?.resume();
      await until('the server answers', async () => (await fetch(`${url}/ready`)).ok);
      return server;
    },
    execute: (inputs: object) =>
      ask('/processes/train/execution', {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ inputs }),
      }),
    done: (job: string) =>
      until(`${job} done`, async () => (await ask(`/jobs/${job}`)).status === 'successful'),
    async weightsOf(model: string) {
      const response = await fetch(`${url}/models/${model}/weights.bin`);
      return Buffer.from(await response.arrayBuffer());
    },
  };
}
