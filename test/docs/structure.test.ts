/** Parts import only from parts before them, and only through their index: docs/explanation/architecture.md has the order. */
import assert from 'node:assert/strict';
import { readdir, readFile } from 'node:fs/promises';
import { dirname, join, posix, sep } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

const source = fileURLToPath(new URL('../../../src/', import.meta.url));

/** The parts from the bottom to the top. */
const PARTS =
  'async metrics html grid raster storage coordination dht query expressions imagery jobs ingest derive engines training analysis api client report cli'.split(
    ' ',
  );
/** Files that every part may import. */
const SHARED = ['errors.ts', 'json-schema.ts', 'plural.ts', 'random.ts', 'version.ts'];
/** The composition root, which only the command line imports. */
const ROOT = 'node.ts';

/** The fault of an import of `target` by `file`, both relative to `src/`; undefined if there is none. */
function faultOf(file: string, target: string): string | undefined {
  const [part = ''] = file.split('/');
  const [wanted = ''] = target.split('/');
  if (part === wanted || SHARED.includes(target)) return undefined;
  if (target.startsWith('../')) {
    const isDemo = file.startsWith('cli/demo/') && target === '../data-samples/index.ts';
    return isDemo ? undefined : 'leaves src/';
  }
  if (SHARED.includes(file)) return 'imports from above';
  if (target === ROOT) return part === 'cli' ? undefined : 'imports the composition root';
  if (!PARTS.includes(wanted)) return 'belongs to no known part';
  if (target !== `${wanted}/index.ts`) return 'bypasses the index';
  if (file !== ROOT && PARTS.indexOf(wanted) > PARTS.indexOf(part)) return 'imports from a later part';
  return undefined;
}

/** Paths of the relative imports of a file: static and dynamic ones, and types. */
function importsOf(code: string): string[] {
  return [...code.matchAll(/(?:\bfrom|\bimport)\s*\(?\s*['"](\.[^'"]+)['"]/g)].map(([, path = '']) => path);
}

test('every import goes to an earlier part, through its index', async () => {
  const files = (await readdir(source, { recursive: true }))
    .filter((file) => file.endsWith('.ts'))
    .map((file) => file.replaceAll(sep, '/'));
  assert.ok(files.length > 100);
  const faults: string[] = [];
  for (const file of files) {
    const [part = ''] = file.split('/');
    if (!PARTS.includes(part) && file !== ROOT && !SHARED.includes(file))
      faults.push(`${file} belongs to no known part`);
    for (const path of importsOf(await readFile(join(source, file), 'utf8'))) {
      const target = posix.normalize(posix.join(dirname(file), path)).replace(/\.js$/, '.ts');
      const fault = faultOf(file, target);
      if (fault) faults.push(`${file} imports ${target}: ${fault}`);
    }
  }
  assert.deepEqual(faults, []);
});

test('the rule detects violations', () => {
  assert.deepEqual(importsOf(`import type { A } from '../query/index.js';\nawait import('./b.js');`), [
    '../query/index.js',
    './b.js',
  ]);
  assert.equal(faultOf('raster/read.ts', 'storage/index.ts'), 'imports from a later part');
  assert.equal(faultOf('query/search.ts', 'storage/catalogue.ts'), 'bypasses the index');
  assert.equal(faultOf('ingest/ingest.ts', 'node.ts'), 'imports the composition root');
  assert.equal(faultOf('ingest/ingest.ts', '../data-samples/index.ts'), 'leaves src/');
  assert.equal(faultOf('errors.ts', 'raster/index.ts'), 'imports from above');
  assert.equal(faultOf('query/search.ts', 'storage/index.ts'), undefined);
  assert.equal(faultOf('node.ts', 'api/index.ts'), undefined);
});
