/** Kills a writer in a separate process at a random moment. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { createInterface } from 'node:readline';

/**
 * Runs `script` on a data folder from number `first` on, and kills it a few milliseconds after it has reported a random one of
 * `steps` a random number of times. Returns the last number that it acknowledged, or `first` - 1.
 */
export async function runAndKill(
  script: string,
  steps: string[],
  dir: string,
  first: number,
): Promise<number> {
  const child = spawn(process.execPath, [script, dir, `${first}`], { stdio: ['ignore', 'pipe', 'inherit'] });
  const step = steps[randomInt(steps.length)]!;
  let times = randomInt(1, 5);
  let acknowledged = first - 1;
  createInterface(child.stdout).on('line', (line) => {
    if (line.startsWith('acknowledged')) acknowledged = Number(line.split(' ')[1]);
    if (line.startsWith(step) && --times === 0) setTimeout(() => child.kill('SIGKILL'), randomInt(8));
  });
  const signal = await new Promise((done) => child.on('close', (_, by) => done(by)));
  assert.equal(signal, 'SIGKILL', 'the writer must not end by itself');
  return acknowledged;
}
