import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { LocalJobService } from '../../src/jobs/index.js';
import { JobLog, MAX_LINE_LENGTH, MAX_LINES, MAX_LOG_BYTES, readLog } from '../../src/jobs/log.js';
import { Catalogue, type LogRecord, Storage } from '../../src/storage/index.js';
import { atEnd } from '../support/at-end.js';
import { tempFolder } from '../support/temp.js';
import { gate, startWork } from './process.js';

/** Lines, the times when they are written, and the times when the log is opened again. */
const steps = fc.array(
  fc.oneof(
    {
      weight: 4,
      arbitrary: fc.record({
        lines: fc.integer({ min: 1, max: 6000 }),
        size: fc.integer({ min: 0, max: 300 }),
      }),
    },
    { weight: 2, arbitrary: fc.constant('write' as const) },
    { weight: 1, arbitrary: fc.constant('open' as const) },
  ),
  { minLength: 1, maxLength: 8 },
);

test('a log keeps its newest lines within its limits, even across restarts', async (t) => {
  const catalogue = await Catalogue.open(await tempFolder(t));
  atEnd(t, () => catalogue.close());
  let runs = 0;
  await fc.assert(
    fc.asyncProperty(steps, async (given) => {
      const job = `job${runs++}`;
      let log = JobLog.after(catalogue, job, 0);
      const all: LogRecord[] = [];
      const write = async () => catalogue.write(log.changes());
      for (const step of given) {
        if (step === 'write') await write();
        else if (step === 'open') {
          await write();
          log = await JobLog.open(catalogue, job);
        } else
          for (let i = 0; i < step.lines; i++) {
            const line: LogRecord = { time: i, level: 'info', text: 'é'.repeat(step.size) };
            all.push(line);
            log.add(line);
          }
      }
      await write();
      // The oracle counts from the end as many lines as fit.
      let bytes = 0;
      let first = all.length;
      while (first > 0 && all.length - first < MAX_LINES) {
        bytes += Buffer.byteLength(all[first - 1]!.text);
        if (bytes > MAX_LOG_BYTES) break;
        first--;
      }
      const kept = await readLog(catalogue, job, 0, 1e6);
      assert.deepEqual(
        kept.map(({ seq, ...line }) => line),
        all.slice(first),
      );
      assert.deepEqual(
        kept.map(({ seq }) => seq),
        kept.map((_, i) => first + 1 + i),
      );
      assert.equal(log.last, all.length);
    }),
    { seed: 42, numRuns: 6 },
  );
});

test('a line that is too long is truncated', async (t) => {
  const catalogue = await Catalogue.open(await tempFolder(t));
  atEnd(t, () => catalogue.close());
  const log = JobLog.after(catalogue, 'job', 0);
  log.add({ time: 0, level: 'error', text: 'x'.repeat(MAX_LINE_LENGTH + 1) });
  await catalogue.write(log.changes());
  assert.equal((await readLog(catalogue, 'job', 0, 1))[0]!.text.length, MAX_LINE_LENGTH);
});

test('lines can be read during the job and after its end, from any line on', async (t) => {
  const storage = await Storage.open(await tempFolder(t));
  const jobs = await LocalJobService.open(storage, []);
  atEnd(t, async () => {
    await jobs.close();
    await storage.close();
  });
  const { work, open, running } = gate();
  const { id } = await startWork(jobs, {}, async (context) => {
    context.log('info', 'one');
    context.log('warning', 'two');
    await work(context, {});
    context.log('error', 'three');
  });
  await running;
  const texts = async (after = 0) => (await jobs.log(id, { after })).map(({ text }) => text);
  while ((await texts()).length < 4) await new Promise((resolve) => setTimeout(resolve, 20));
  assert.deepEqual(await texts(), ['accepted', 'running', 'one', 'two']);
  open('done');
  await jobs.wait(id);
  assert.deepEqual(await texts(3), ['two', 'three', 'successful']);
  assert.deepEqual(
    (await jobs.log(id, { after: 1, limit: 2 })).map(({ seq }) => seq),
    [2, 3],
  );
  await assert.rejects(jobs.log('none'), { code: 'TW_JOB_NOT_FOUND' });
});
