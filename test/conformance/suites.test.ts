import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { finished } from '../support/command.js';

test('the runner of public test suites names a folder that does not exist', async () => {
  const main = fileURLToPath(new URL('../../tools/suites/main.js', import.meta.url));
  const { code, stdout, stderr } = await finished(spawn(process.execPath, [main, '/nonexistent']));
  assert.deepEqual([code, stdout], [2, '']);
  assert.match(stderr, /^error: .*\/nonexistent.*\n$/);
});
