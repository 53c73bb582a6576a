/** Server-sent events of jobs, over real sockets. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { Client, httpTransport, type JobDocument, type JobEvent } from '../../src/client/index.js';
import type { JobContext } from '../../src/jobs/index.js';
import { gate, process as processOf, type Work } from '../jobs/process.js';
import { eventually } from '../support/eventually.js';
import { tempFolder } from '../support/temp.js';
import { jobServer } from './job-server.js';

async function served(t: TestContext, work: Work) {
  const fill = processOf(work, { resumable: true });
  const node = await jobServer(t, await tempFolder(t), [fill]);
  const url = await node.server.listen({ port: 0, host: '127.0.0.1' });
  return { ...node, fill, url, client: new Client(httpTransport(url)) };
}

interface Message {
  event: string;
  id: number | undefined;
  data: Record<string, unknown>;
}

/** Reads messages until `count` messages or the end have arrived. */
async function messages(url: string, most: number, headers: Record<string, string> = {}): Promise<Message[]> {
  const controller = new AbortController();
  const response = await fetch(url, { headers, signal: controller.signal });
  assert.equal(response.status, 200);
  assert.match(response.headers.get('content-type') ?? '', /^text\/event-stream/);
  const found: Message[] = [];
  let text = '';
  for await (const bytes of response.body!) {
    text += Buffer.from(bytes).toString();
    const blocks = text.split('\n\n');
    text = blocks.pop()!;
    for (const block of blocks) {
      const field = (name: string) => new RegExp(`^${name}: (.*)$`, 'm').exec(block)?.[1];
      const [event, id, data] = [field('event'), field('id'), field('data')];
      if (event && data) found.push({ event, id: id ? Number(id) : undefined, data: JSON.parse(data) });
    }
    if (found.length >= most) break;
  }
  controller.abort();
  return found;
}

test('a reader that reconnects continues where it stopped, and gets 204 after the end', async (t) => {
  const { work, open, running } = gate();
  const { jobs, fill, url } = await served(t, async (context, inputs) => {
    for (let i = 0; i < 5; i++) context.log('info', `before ${i}`);
    await work(context, inputs);
    for (let i = 0; i < 5; i++) context.log('warning', `after ${i}`);
  });
  const { id } = await jobs.start(fill, {});
  await running;
  const events = `${url}/jobs/${id}/events`;
  const seen = (await messages(`${events}?after=0`, 5)).filter((one) => one.event !== 'progress');
  open('done');
  const last = seen.at(-1)!.id!;
  const more = await messages(events, 1000, { 'last-event-id': String(last) });
  const told = [...seen, ...more].filter((one) => one.event !== 'progress');
  // A reader that reconnects while the job runs may get its state.
  const once = told.filter(({ event, id }, i) => event !== 'state' || id !== told[i - 1]?.id);
  assert.deepEqual(
    once.map((one) => one.id),
    Array.from({ length: 13 }, (_, i) => i + 1),
  );
  const texts = more.flatMap(({ event, data }) => (event === 'log' ? [data['text']] : []));
  assert.ok(texts.includes('after 4'));
  const final = more.at(-1)!;
  assert.deepEqual([final.event, final.data['status'], final.data['progress']], ['state', 'successful', 100]);
  const whole = await messages(`${events}?after=0`, 1000);
  assert.deepEqual(
    whole.map((one) => one.id),
    Array.from({ length: 13 }, (_, i) => i + 1),
    'each line once, also after the end',
  );
  const now = await messages(events, 1000);
  assert.deepEqual(
    now.map(({ data }) => data['status']),
    ['successful'],
  );
  const again = await fetch(events, { headers: { 'last-event-id': String(final.id) } });
  assert.equal(again.status, 204);
  assert.equal((await fetch(`${url}/jobs/none/events`)).status, 404);
});

test('the client follows a job to its end, with its complete log', async (t) => {
  const { work, open, running } = gate();
  const { jobs, fill, client } = await served(t, async (context, inputs) => {
    context.log('info', 'one');
    context.progress({ total: 4, done: 1 });
    await work(context, inputs);
    context.log('error', 'two');
  });
  const { id } = await jobs.start(fill, {});
  await running;
  const seen: JobEvent[] = [];
  for await (const event of client.jobEvents(id)) {
    seen.push(event);
    if (event.event === 'log') open('done');
  }
  const logs = seen.flatMap((event) =>
    event.event === 'log' ? [`${event.data.level} ${event.data.text}`] : [],
  );
  assert.deepEqual(logs, ['info one', 'error two']);
  const last = seen.at(-1)!;
  assert.deepEqual([last.event, last.event === 'state' && last.data.status], ['state', 'successful']);
  for await (const event of client.jobEvents(id)) seen.push(event);
  assert.equal(seen.filter(({ event }) => event === 'log').length, 4, 'also after the end');
  await assert.rejects(client.jobEvents('none').next(), { code: 'TW_JOB_NOT_FOUND' });
});

test('skipped tiles do not count as progress of a job', async (t) => {
  const { work, open, running } = gate();
  const steps: JobContext['progress'][] = [];
  const { jobs, fill, client } = await served(t, async (context, inputs) => {
    steps.push(context.progress);
    context.progress({ total: 20, skipped: 16 });
    await work(context, inputs);
  });
  const { id } = await jobs.start(fill, {});
  await running;
  for (const [step, expected] of [
    [{}, [16, 0, 'no rate', false]],
    [{ share: 0.09 }, [16, 9, 'a rate', false]],
    [{ share: 0.1 }, [16, 10, 'a rate', true]],
    [{ share: 0.25, done: 1 }, [16, 25, 'a rate', true]],
    [{ share: 0.5 }, [16, 50, 'a rate', true]],
    [{ done: 4 }, [16, 50, 'a rate', true]],
  ] as const) {
    steps[0]!(step);
    await eventually(`the job says ${expected}`, async () => {
      const { tiles, progress, ...job } = (await client.job(id)) as JobDocument & Record<string, unknown>;
      const rate = job['tilesPerSecond'] === undefined ? 'no rate' : 'a rate';
      return isDeepStrictEqual([tiles.skipped, progress, rate, 'secondsLeft' in job], expected);
    });
  }
  open('done');
});

test('each of the maximum number of listeners gets the end; a reader that leaves frees its slot', async (t) => {
  const { work, open, running } = gate();
  const { jobs, fill, url } = await served(t, work);
  const { id } = await jobs.start(fill, {});
  await running;
  const events = `${url}/jobs/${id}/events`;
  const first = new AbortController();
  const connect = () => fetch(events);
  const open64 = await Promise.all([
    fetch(events, { signal: first.signal }),
    ...Array.from({ length: 63 }, connect),
  ]);
  assert.ok(open64.every(({ status }) => status === 200));
  const refused = await connect();
  assert.equal(refused.status, 429);
  assert.ok(Number(refused.headers.get('retry-after')) > 0);
  assert.equal(((await refused.json()) as { code: string }).code, 'TW_API_TOO_MANY_LISTENERS');
  first.abort();
  let late = await connect();
  while (late.status !== 200) {
    await sleep(20);
    late = await connect();
  }
  open('done');
  const texts = await Promise.all([...open64.slice(1), late].map((response) => response.text()));
  assert.ok(texts.every((text) => text.includes('"status":"successful"')));
});

test('clients that close their connection before the stream begins leave no listener behind', async (t) => {
  const { work, open, running } = gate();
  const { jobs, fill, url, server } = await served(t, work);
  const { id } = await jobs.start(fill, {});
  await running;
  const get = jobs.get.bind(jobs);
  // More than the 256 streams that the server accepts.
  for (let i = 0; i < 260; i++) {
    const client = connect(Number(new URL(url).port), '127.0.0.1');
    const [accepted] = (await once(server.server, 'connection')) as [Socket];
    const isClosed = new Promise((resolve) => accepted.once('close', resolve));
    const isAnswered = new Promise<void>((resolve) => {
      jobs.get = async (asked) => {
        client.resetAndDestroy();
        await isClosed;
        setImmediate(resolve);
        return get(asked);
      };
    });
    client.write(`GET /jobs/${id}/events HTTP/1.1\r\nHost: localhost\r\n\r\n`);
    await isAnswered;
  }
  jobs.get = get;
  const answer = await fetch(`${url}/jobs/${id}/events`);
  assert.equal(answer.status, 200);
  open('done');
  assert.match(await answer.text(), /"status":"successful"/);
});
