/** docs/reference/http-api.md lists every route of /openapi.json. UPDATE_DOCS=1 writes the table again. */
import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { openNode } from '../../src/node.js';
import { atEnd } from '../support/at-end.js';
import { tempFolder } from '../support/temp.js';

const page = fileURLToPath(new URL('../../../docs/reference/http-api.md', import.meta.url));
const [START, END] = ['<!-- routes -->\n', '<!-- /routes -->'];

interface Operation {
  summary: string;
}

test('docs/reference/http-api.md lists every route', async (t) => {
  const node = await openNode({ data: join(await tempFolder(t), 'data'), memory: 128e6, cores: 1 });
  atEnd(t, () => node.close());
  const headers = { authorization: `Bearer ${node.ownerSecret}`, host: 'localhost:8080' };
  const document = (await node.server.inject({ url: '/openapi.json', headers })).json();
  const rows = Object.entries<Record<string, Operation>>(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(
      ([method, { summary }]) => `| \`${method.toUpperCase()} ${path}\` | ${summary} |\n`,
    ),
  );
  assert.ok(rows.length > 60);
  const before = await readFile(page, 'utf8');
  const table = `| route | what it does |\n|---|---|\n${rows.join('')}`;
  const [head = ''] = before.split(START);
  const [, tail = ''] = before.split(END);
  const expected = `${head}${START}${table}${END}${tail}`;
  if (process.env.UPDATE_DOCS) await writeFile(page, expected);
  else assert.equal(before, expected, 'run: UPDATE_DOCS=1 npm test -- docs/http-api');
});
