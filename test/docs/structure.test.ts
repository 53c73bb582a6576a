/**
 * Parts import only from parts before them, and only through their index: docs/explanation/architecture.md has the order. Imports between
 * sibling folders and files have no cycles, at any depth. Every part states its purpose in its index.ts.
 */
import assert from 'node:assert/strict';
import { readdir, readFile } from 'node:fs/promises';
import { dirname, join, posix, sep } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

const source = fileURLToPath(new URL('../../../src/', import.meta.url));

/** The parts from the bottom to the top. */
const PARTS =
  'async metrics html grid raster storage coordination dht query remote expressions imagery jobs ingest subscriptions derive engines training hyperspectral api client demo-report cli'.split(
    ' ',
  );
/** Files that every part may import. */
const SHARED = ['errors.ts', 'version.ts'];
/** A folder whose files every part may import. */
const UTILS = 'utils/';
/** The composition root, which only the command line imports. */
const ROOT = 'node.ts';

const isShared = (file: string) => SHARED.includes(file) || file.startsWith(UTILS);

/** The fault of an import of `target` by `file`, both relative to `src/`; undefined if there is none. */
function faultOf(file: string, target: string): string | undefined {
  const [part = ''] = file.split('/');
  const [wanted = ''] = target.split('/');
  if (part === wanted || isShared(target)) return undefined;
  if (target.startsWith('../')) {
    const isDemo = file === 'cli/demo.ts' && target === '../data-samples/index.ts';
    return isDemo ? undefined : 'leaves src/';
  }
  if (isShared(file)) return 'imports from above';
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

/** Paths of all source files, relative to `src/`. */
async function sourceFiles(): Promise<string[]> {
  const files = await readdir(source, { recursive: true });
  return files.filter((file) => file.endsWith('.ts')).map((file) => file.replaceAll(sep, '/'));
}

/** Target of an import by `file`, relative to `src/`. */
function resolveImport(file: string, path: string): string {
  return posix.normalize(posix.join(dirname(file), path)).replace(/\.js$/, '.ts');
}

test('every import goes to an earlier part, through its index', async () => {
  const files = await sourceFiles();
  assert.ok(files.length > 100);
  const faults: string[] = [];
  for (const file of files) {
    const [part = ''] = file.split('/');
    if (!PARTS.includes(part) && file !== ROOT && !isShared(file))
      faults.push(`${file} belongs to no known part`);
    for (const path of importsOf(await readFile(join(source, file), 'utf8'))) {
      const target = resolveImport(file, path);
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

/** The folders that contain a file, from the outermost to the innermost. */
function foldersOf(file: string): string[] {
  const names = file.split('/').slice(0, -1);
  return names.map((_, i) => names.slice(0, i + 1).join('/'));
}

/** Cycles of imports between the direct children (folders and files) of each folder, as `folder: a -> b -> a`. */
function findCycles(imports: [file: string, target: string][]): string[] {
  const graphs = new Map<string, Map<string, Set<string>>>();
  for (const [file, target] of imports)
    for (const folder of foldersOf(file)) {
      if (!target.startsWith(`${folder}/`)) continue;
      const [from, to] = [file, target].map((path) => path.slice(folder.length + 1).split('/', 1)[0]!);
      if (from === to) continue;
      const graph = graphs.get(folder) ?? new Map<string, Set<string>>();
      graphs.set(folder, graph.set(from!, (graph.get(from!) ?? new Set()).add(to!)));
    }
  return [...graphs].flatMap(([folder, graph]) => {
    const done = new Set<string>();
    const visit = (child: string, path: string[]): string[] => {
      if (path.includes(child))
        return [`${folder}: ${[...path.slice(path.indexOf(child)), child].join(' -> ')}`];
      if (done.has(child)) return [];
      const found = [...(graph.get(child) ?? [])].flatMap((next) => visit(next, [...path, child]));
      done.add(child);
      return found;
    };
    return [...graph.keys()].flatMap((child) => visit(child, []));
  });
}

test('imports between sibling folders and files have no cycles', async () => {
  const imports: [string, string][] = [];
  for (const file of await sourceFiles())
    for (const path of importsOf(await readFile(join(source, file), 'utf8')))
      imports.push([file, resolveImport(file, path)]);
  assert.deepEqual(findCycles(imports), []);
});

test('a cycle is found at every depth, also through an index', () => {
  assert.deepEqual(findCycles([['a/b/x.ts', 'a/c/y.ts']]), []);
  assert.deepEqual(
    findCycles([
      ['a/b/x.ts', 'a/c/y.ts'],
      ['a/c/z.ts', 'a/b/index.ts'],
    ]),
    ['a: b -> c -> b'],
  );
  assert.deepEqual(
    findCycles([
      ['a/b/c/x.ts', 'a/b/y.ts'],
      ['a/b/y.ts', 'a/b/c/z.ts'],
    ]),
    ['a/b: c -> y.ts -> c'],
  );
});

/** The command line starts in `main.ts`. */
const doorOf = (part: string) => `${part}/${part === 'cli' ? 'main' : 'index'}.ts`;

test('every part states its purpose in its index.ts', async () => {
  const faults: string[] = [];
  for (const part of PARTS)
    if (!/^(#!.*\n)?\/\*\*/.test(await readFile(join(source, doorOf(part)), 'utf8')))
      faults.push(`${doorOf(part)} begins without its purpose`);
  assert.deepEqual(faults, []);
});
