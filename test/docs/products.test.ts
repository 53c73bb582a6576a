/** The example in docs/tutorials/add-a-product.md is the one that is tested. UPDATE_DOCS=1 rewrites it. */
import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

const repository = new URL('../../../', import.meta.url);
const tutorial = fileURLToPath(new URL('docs/tutorials/add-a-product.md', repository));
const products = fileURLToPath(new URL('docs/reference/products.md', repository));

/** A file of the example, its path in the document, and its imports with the paths that they have there. */
interface ExampleFile {
  name: string;
  shownPath: string;
  imports: [string, string][];
}

const EXAMPLE: ExampleFile[] = [
  {
    name: 'kelvin.ts',
    shownPath: 'src/ingest/formats/kelvin.ts',
    imports: [
      ["'../../../src/ingest/formats/", "'./"],
      ["'../../../src/ingest/", "'../"],
      ["'../../../src/", "'../../"],
    ],
  },
  {
    name: 'kelvin.test.ts',
    shownPath: 'test/ingest/kelvin.test.ts',
    imports: [
      ["'../../../src/", "'../../src/"],
      ["'../../support/", "'../support/"],
      ["'./kelvin.js'", "'../../src/ingest/formats/kelvin.js'"],
    ],
  },
];

test('docs/tutorials/add-a-product.md shows the tested example', async () => {
  const before = await readFile(tutorial, 'utf8');
  let text = before;
  for (const { name, shownPath, imports } of EXAMPLE) {
    const path = fileURLToPath(new URL(`test/ingest/example/${name}`, repository));
    let code = await readFile(path, 'utf8');
    for (const [from, to] of imports) code = code.replaceAll(from, to);
    const start = text.indexOf(`\`${shownPath}\`:\n\n\`\`\`ts\n`);
    assert.ok(start >= 0, `no code block for ${shownPath}`);
    const from = text.indexOf('```ts\n', start) + '```ts\n'.length;
    text = text.slice(0, from) + code + text.slice(text.indexOf('```\n', from));
  }
  if (process.env.UPDATE_DOCS) await writeFile(tutorial, text);
  else assert.equal(before, text, 'run with UPDATE_DOCS=1');
});

test('the table of products has every format', async () => {
  const text = await readFile(products, 'utf8');
  const registry = await readFile(new URL('src/ingest/formats/registry.ts', repository), 'utf8');
  const names = /const FORMATS: ProductFormat\[\] = \[([^\]]*)\]/.exec(registry)![1]!.match(/\w+/g)!;
  const files = new Map<string, string>();
  for (const [, imported = '', file = ''] of registry.matchAll(/import \{([^}]*)\} from '\.\/([\w-]+)\.js'/g))
    for (const name of imported.match(/\w+/g)!) files.set(name, `${file}.ts`);
  for (const name of names) {
    assert.ok(files.has(name), `${name} is not imported`);
    assert.ok(text.includes(`\`${files.get(name)}\``), `${files.get(name)} is not in the table`);
  }
});
