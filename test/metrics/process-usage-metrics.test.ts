/** The usage of a process and its descendants, compared with `ps`. */
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { test } from 'node:test';
import { processUsage } from '../../src/metrics/usage.js';

const LINUX = process.platform === 'linux' ? false : 'only Linux has /proc';

/** Takes so much CPU time, then waits for its input to end. */
const BUSY = (ms: number) =>
  `while (process.cpuUsage().user < ${1000 * ms}); console.log('done'); process.stdin.resume();`;

test('descendants count, even after their end', { skip: LINUX }, async (t) => {
  // A process that starts another one.
  const script = `require('child_process').spawn(process.execPath, ['-e', ${JSON.stringify(BUSY(600))}], { stdio: 'inherit' })`;
  const before = processUsage();
  const child = spawn(process.execPath, ['-e', script], { stdio: ['pipe', 'pipe', 'inherit'] });
  t.after(() => child.kill());
  await once(child.stdout, 'data');
  const during = processUsage();
  const own = processUsage(child.pid);
  assert.ok(own.cpuSeconds > 0.3, `${own.cpuSeconds} s`);
  assert.ok(during.cpuSeconds - before.cpuSeconds >= own.cpuSeconds - 0.1);
  assert.ok(during.memoryBytes - before.memoryBytes > 1e7, 'two processes of Node');
  const closed = once(child, 'close');
  child.stdin.end();
  await closed;
  const after = processUsage();
  assert.ok(after.cpuSeconds >= during.cpuSeconds, 'what ended children have used stays');
  assert.ok(after.memoryBytes < during.memoryBytes - 1e7);
});

test('CPU time and memory agree with ps', { skip: LINUX }, async (t) => {
  const child = spawn(process.execPath, ['-e', BUSY(1500)], { stdio: ['pipe', 'pipe', 'inherit'] });
  t.after(() => child.kill());
  await once(child.stdout, 'data');
  const { cpuSeconds, memoryBytes, network } = processUsage(child.pid);
  const [time, rss] = execFileSync('ps', ['-o', 'times=,rss=', '-p', String(child.pid)], { encoding: 'utf8' })
    .trim()
    .split(/\s+/)
    .map(Number);
  assert.ok(Math.abs(cpuSeconds - time!) <= 1, `${cpuSeconds} and ${time} s`);
  // The figure of ps includes mapped files, such as the program itself.
  assert.ok(memoryBytes > 5e6 && memoryBytes < 1024 * rss!, `${memoryBytes} and ${rss} kB`);
  assert.deepEqual(network!.namespace, processUsage().network!.namespace);
  assert.ok(network!.sentBytes >= 0 && network!.loopbackBytes >= 0);
});
