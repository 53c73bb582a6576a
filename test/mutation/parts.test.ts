/** Every file and test that a part of the mutation tests names exists. */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join, sep } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { PARTS } from './parts.js';

const dist = fileURLToPath(new URL('../../', import.meta.url));

/** The paths of a pattern with one `{a,b}`, and for each whether a file has it; `*` and `!(a|b)` stand for a file's name. */
function* pathsOf(pattern: string): Generator<RegExp> {
  const [, before, names, after] = /^([^{]*)\{([^}]*)\}(.*)$/.exec(pattern) ?? [pattern, pattern, '', ''];
  for (const name of names!.split(',')) {
    const path = `${before}${name}${after}`.replaceAll('.', '\\.');
    yield new RegExp(`^${path.replaceAll(/!\(([^)]*)\)/g, '(?!(?:$1)\\.js)*').replaceAll('*', '[^/]*')}$`);
  }
}

test('every file that a part changes, and every test that covers it, exists', async () => {
  const source = await readdir(join(dist, 'src'), { recursive: true });
  const files = source.map((file) => `src/${file.replaceAll(sep, '/')}`);
  const missing: string[] = [];
  for (const [part, { mutate, tests }] of Object.entries(PARTS)) {
    for (const pattern of mutate)
      for (const path of pathsOf(pattern))
        if (!files.some((file) => path.test(file))) missing.push(`${part}: ${path}`);
    for (const name of tests)
      if (!existsSync(join(dist, 'test', `${name}.test.js`))) missing.push(`${part}: ${name}`);
  }
  assert.deepEqual(missing, []);
});
