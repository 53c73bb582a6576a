/**
 * Runs the tests: `npm test`, or `npm test -- raster` for files whose path, which begins with `test/`, has one of the words. Closes with a
 * line of counts, and exits with 1 where a test failed or none ran.
 */
import { readdir } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { join, relative } from 'node:path';
import { run } from 'node:test';
import { spec } from 'node:test/reporters';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('.', import.meta.url));
const words = process.argv.slice(2);
const all = await readdir(root, { recursive: true });
const files = all
  .filter(
    (file) =>
      file.endsWith('.test.js') &&
      (words.length === 0 || words.some((word) => `test/${file}`.includes(word))),
  )
  // The tests of trainings take longest. They begin, so that every core is busy until the end.
  .sort((a, b) => (a < b ? 1 : -1))
  .map((file) => join(root, file));

const counts = { passed: 0, failed: 0, skipped: 0 };
const isFile = (name: string) =>
  files.includes(name) || files.some((file) => relative(process.cwd(), file) === name);

const stream = run({ files, concurrency: availableParallelism(), timeout: 600_000 });
stream.on('test:pass', ({ name, skip, details }) => {
  if (details.type === 'suite' || isFile(name)) return;
  if (skip !== undefined && skip !== false) counts.skipped++;
  else counts.passed++;
});
stream.on('test:fail', ({ details }) => {
  if (details.type !== 'suite') counts.failed++;
});
stream.compose(new spec()).pipe(process.stdout);
await new Promise((resolve) => stream.once('close', resolve));

process.on('exit', () => {
  const { passed, failed, skipped } = counts;
  console.log(`${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`);
  if (failed > 0 || passed === 0) process.exitCode = 1;
});
