/** docs/reference/errors.md lists every error that the code defines. UPDATE_DOCS=1 rewrites it. */
import assert from 'node:assert/strict';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { errorCatalogue } from '../../src/errors.js';

const source = fileURLToPath(new URL('../../src/', import.meta.url));
const document = fileURLToPath(new URL('../../../docs/reference/errors.md', import.meta.url));

const HEAD = `# Errors

Every error has a code that never changes. On the command line it stands in brackets after the message; over HTTP it is the
\`code\` of the \`application/problem+json\` body. The message names the input and says what to do.

| code | HTTP status | meaning |
|---|---|---|
`;

test('docs/reference/errors.md lists every error code', async () => {
  for (const file of await readdir(source, { recursive: true })) {
    if (file.endsWith('errors.js')) await import(join(source, file));
  }
  const rows = errorCatalogue().map(
    ({ code, status, meaning }) => `| \`${code}\` | ${status} | ${meaning} |\n`,
  );
  assert.ok(rows.length > 20);
  const expected = HEAD + rows.join('');
  if (process.env.UPDATE_DOCS) await writeFile(document, expected);
  assert.equal(await readFile(document, 'utf8'), expected, 'run: UPDATE_DOCS=1 npm test -- docs/errors');
});

test('every message ends as a sentence and every code names its area', () => {
  for (const { code, meaning } of errorCatalogue()) {
    assert.match(code, /^TW_[A-Z]+_[A-Z0-9_]+$/);
    assert.match(meaning, /\.$/);
  }
});
