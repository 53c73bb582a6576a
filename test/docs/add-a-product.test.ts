/** The example in docs/add-a-product.md is the tested one. UPDATE_DOCS=1 writes it again. */
import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

const repository = new URL('../../../', import.meta.url);
const document = fileURLToPath(new URL('docs/add-a-product.md', repository));

/** The example stands elsewhere than a real format, so that its imports start elsewhere. */
const IMPORTS: [string, string][] = [
  ["'../../../src/ingest/formats/", "'./"],
  ["'../../../src/ingest/", "'../"],
  ["'../../../src/", "'../../"],
  ["'../../support/", "'../support/"],
  ["'./kelvin.js'", "'../../src/ingest/formats/kelvin.js'"],
];

test('docs/add-a-product.md shows the tested example', async () => {
  const before = await readFile(document, 'utf8');
  let text = before;
  for (const name of ['kelvin.ts', 'kelvin.test.ts']) {
    const path = fileURLToPath(new URL(`test/ingest/example/${name}`, repository));
    let code = await readFile(path, 'utf8');
    for (const [from, to] of IMPORTS) code = code.replaceAll(from, to);
    const shown = name.includes('test') ? `test/ingest/${name}` : `src/ingest/formats/${name}`;
    const start = text.indexOf(`\`${shown}\`:\n\n\`\`\`ts\n`);
    assert.ok(start >= 0, `no code block for ${shown}`);
    const from = text.indexOf('```ts\n', start) + '```ts\n'.length;
    text = text.slice(0, from) + code + text.slice(text.indexOf('```\n', from));
  }
  if (process.env.UPDATE_DOCS) await writeFile(document, text);
  else assert.equal(before, text, 'run with UPDATE_DOCS=1');
});

test('the table of products has every format', async () => {
  const text = await readFile(document, 'utf8');
  const index = await readFile(fileURLToPath(new URL('src/ingest/formats/index.ts', repository)), 'utf8');
  for (const [, file = ''] of index.matchAll(/from '\.\/((?:[\w-]+\/)*[\w-]+)\.js'/g)) {
    if (file.startsWith('shared/')) continue;
    assert.ok(text.includes(`\`${file}.ts\``), `${file}.ts is not in the table`);
  }
});
