/** How a command ends if its output cannot be written, or a signal stops it: exit codes as shells see them. */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdir, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { atEnd } from '../../support/at-end.js';
import { finished, MAIN, start, tilewright } from '../../support/command.js';
import { SCENE_FLAGS, writeTestScene } from '../../support/scenes.js';
import { tempFolder } from '../../support/temp.js';

/** Runs a script of the shell in which `tilewright` is the command. */
function shell(script: string, ...args: string[]): ChildProcess {
  const define = `tilewright() { "${process.execPath}" "${MAIN}" "$@"; };`;
  return spawn('bash', ['-c', `${define} ${script}`, 'bash', ...args], { detached: true });
}

const FLAGS = ['--datetime', '2024-06-01', ...SCENE_FLAGS];

async function filledFolder(t: TestContext): Promise<string> {
  const folder = await tempFolder(t);
  const data = join(folder, 'data');
  const scene = await writeTestScene(join(folder, 'scene.tif'));
  await tilewright('ingest', scene, ...FLAGS, '--data', data);
  return data;
}

/** Runs a command with stdout redirected by `redirection`, and returns its own exit code and its messages. */
async function redirected(redirection: string, ...args: string[]) {
  const { stderr } = await finished(
    shell(`{ tilewright "$@"; echo "exit $?" >&2; } ${redirection}`, ...args),
  );
  const [, messages, code] = /^([\s\S]*)exit (\d+)\n$/.exec(stderr) ?? [];
  return { code: Number(code), messages };
}

test('a closed pipe changes neither the exit code nor the end of a command', async (t) => {
  const data = await filledFolder(t);
  const closed = '| true';
  const search = await redirected(closed, 'search', '--data', data);
  assert.deepEqual(search, { code: 0, messages: '' });
  const tile = (await readdir(join(data, 'tiles'), { recursive: true })).find((name) =>
    name.endsWith('.tif'),
  );
  await rm(join(data, 'tiles', tile!));
  const verify = await redirected(closed, 'verify', '--data', data);
  assert.equal(verify.code, 1, 'the damaged store is reported');
  assert.equal(existsSync(join(data, 'lock')), false, 'the data folder is free');
  const inputs = [join(data, '..', 'scene.tif'), join(data, '..', 'nope.tif')];
  const ingest = await redirected(closed, 'ingest', ...inputs, ...FLAGS, '--data', data);
  assert.equal(ingest.code, 3, 'one of the inputs failed');
});

test('stdout on a full disk is an error without a stack trace', {
  skip: !existsSync('/dev/full') && 'this system has no /dev/full',
}, async (t) => {
  const data = await filledFolder(t);
  const { code, messages } = await redirected('> /dev/full', 'search', '--data', data);
  assert.deepEqual([code, messages], [1, 'error: stdout: the disk is full\n']);
  assert.equal(existsSync(join(data, 'lock')), false, 'the data folder is free');
});

test('a watch ends if nothing reads its batches any more', { timeout: 60_000 }, async (t) => {
  const folder = await tempFolder(t);
  const inbox = join(folder, 'inbox');
  await mkdir(inbox);
  await writeTestScene(join(inbox, 'scene.tif'));
  const args = ['ingest', inbox, '--watch', '--format', 'json', ...FLAGS, '--data', join(folder, 'data')];
  assert.equal((await redirected('| true', ...args)).code, 0);
});

test('Ctrl-C ends a command by the signal, so that a shell loop ends too', { timeout: 60_000 }, async (t) => {
  const folder = await tempFolder(t);
  const data = join(folder, 'data');
  const loop = shell(
    'for i in 1 2; do tilewright "$@"; echo "after $i"; done',
    ...['ingest', folder, '--watch', '--data', data],
  );
  const end = finished(loop);
  atEnd(t, () => {
    if (loop.exitCode === null && loop.signalCode === null) process.kill(-loop.pid!, 'SIGKILL');
  });
  await once(loop.stderr!, 'data');
  // A terminal sends it to all processes of the group.
  process.kill(-loop.pid!, 'SIGINT');
  const { signal, stdout } = await end;
  assert.deepEqual([signal, stdout], ['SIGINT', '']);
  assert.equal(existsSync(join(data, 'lock')), false, 'the data folder is free');
});

test('SIGTERM ends a command by that signal', { timeout: 60_000 }, async (t) => {
  const folder = await tempFolder(t);
  const watch = start(['ingest', folder, '--watch', '--data', join(folder, 'data')]);
  const end = finished(watch);
  atEnd(t, () => watch.kill('SIGKILL'));
  await once(watch.stderr!, 'data');
  watch.kill('SIGTERM');
  assert.equal((await end).signal, 'SIGTERM');
});
