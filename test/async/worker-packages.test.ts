/** Packages that the entry of each worker thread and child process loads when it starts. A thread that loads more starts later. */
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { test } from 'node:test';

const source = new URL('../../src/', import.meta.url);

/** By entry. Packages that are loaded later, by `import()`, are not in it. */
const PACKAGES: Record<string, string> = {
  'derive/worker.js': 'ajv level ngeohash robust-predicates saxes',
  'dht/log/merge-worker.js': 'ajv level ngeohash saxes',
  'engines/probe.js': '',
  'hyperspectral/cnn/worker.js': 'ajv level ngeohash robust-predicates saxes',
  'hyperspectral/worker.js': 'ajv level ml-matrix ngeohash robust-predicates saxes',
  'imagery/worker.js': 'ngeohash saxes',
  'ingest/cut/worker.js': 'ajv level ngeohash robust-predicates saxes',
  'training/distributed/worker.js': 'ajv saxes',
  'training/freshness/worker.js': 'ajv level ngeohash saxes',
  'training/predict-worker.js': 'ajv level ngeohash robust-predicates saxes',
  'training/texture/worker.js': 'saxes',
  'training/train-worker.js': 'saxes',
};

/** The static imports of a compiled file, which has no types. */
const importsOf = (file: URL) =>
  [
    ...readFileSync(file, 'utf8').matchAll(/^(?:import|export)\s*(?:[\w*{}\s,$]+from\s*)?['"]([^'"]+)['"]/gm),
  ].map(([, path]) => path!);

/** Packages that a file loads, directly or through other files of `src`. */
function packagesOf(entry: URL): string[] {
  const packages = new Set<string>();
  const files = new Map([[entry.href, entry]]);
  for (const file of files.values())
    for (const path of importsOf(file))
      if (path.startsWith('.')) {
        const imported = new URL(path, file);
        files.set(imported.href, imported);
      } else if (!path.startsWith('node:')) packages.add(/^(?:@[^/]+\/)?[^/]+/.exec(path)![0]);
  return [...packages].sort();
}

test('the entry of a worker or child process loads only the packages that it needs at once', async () => {
  const entries = new Set<string>();
  for (const name of await readdir(source, { recursive: true })) {
    // The scripts of pages are files for a browser.
    if (!name.endsWith('.js') || name.startsWith('api')) continue;
    const file = new URL(name, source);
    for (const [, path] of readFileSync(file, 'utf8').matchAll(
      /new URL\('(\.[^']+?)(?:\.bundle)?\.js', import\.meta\.url\)/g,
    )) {
      const entry = new URL(`${path}.js`, file);
      if (existsSync(entry)) entries.add(entry.href.slice(source.href.length));
    }
  }
  assert.deepEqual(
    Object.fromEntries(
      [...entries].sort().map((entry) => [entry, packagesOf(new URL(entry, source)).join(' ')]),
    ),
    PACKAGES,
  );
});
