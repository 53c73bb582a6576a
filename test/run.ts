/**
 * Runs the tests: `npm test`, or `npm test -- raster` for files whose path, which begins with `test/`, has one of the words. The files that
 * took longest when `npm test -- --record` last ran begin, so that every core is busy until the end, and short files share processes.
 * Prints each minute what runs, and closes with a line of counts. Exits with 1 if a test failed or none ran. `--nightly` also runs the
 * tests for which each change would wait too long.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { availableParallelism, tmpdir } from 'node:os';
import { basename, join, relative, sep } from 'node:path';
import { run } from 'node:test';
import { spec } from 'node:test/reporters';
import { fileURLToPath, pathToFileURL } from 'node:url';

const root = fileURLToPath(new URL('.', import.meta.url));
const words = process.argv.slice(2).filter((word) => !word.startsWith('--'));
// The processes of the tests inherit it (`support/nightly.ts`).
if (process.argv.includes('--nightly')) process.env['TILEWRIGHT_NIGHTLY'] = '1';
const isRecorded = process.argv.includes('--record');
const sources = fileURLToPath(new URL('../../test/', import.meta.url));
/** Seconds of the tests of each file; files of less than a second are not in it. */
const recordPath = join(sources, 'durations.json');
const recorded: Record<string, number> = JSON.parse(readFileSync(recordPath, 'utf8'));
/** Name of a test file in the record: its path below the tests, without its ending. With source maps, the path is that of the source. */
const nameOf = (file: string) =>
  relative(file.startsWith(root) ? root : sources, file)
    .replaceAll(sep, '/')
    .replace(/\.[jt]s$/, '');
const all = await readdir(root, { recursive: true });
const files = all
  .filter(
    (file) =>
      file.endsWith('.test.js') &&
      (words.length === 0 || words.some((word) => `test/${file}`.includes(word))),
  )
  .map((file) => join(root, file));

/** Limits of the files in one process, which spends about two CPU seconds on loading the code. */
const TOGETHER = { files: 12, seconds: 90 };
/** Files that take longer run alone, so that they can begin early and that no process takes long. */
const ALONE_SECONDS = 7;
/** Assumed for a file that is not in the record. */
const UNRECORDED_SECONDS = 1;
const groupFolder = mkdtempSync(join(tmpdir(), 'tilewright-test-groups-'));
process.on('exit', () => rmSync(groupFolder, { recursive: true, force: true }));

/** Hooks outside of a suite would run for the tests of all files of the process, and a process can run only one training engine. */
const needsOwnProcess = (file: string) =>
  /^(before|after)(Each)?\(|\bengines\//m.test(readFileSync(file, 'utf8'));

/** Returns the files with the short ones replaced by groups, each a file that imports some of them. Long files begin. */
function withGroups(files: string[]): string[] {
  const secondsOf = (file: string) => recorded[nameOf(file)] ?? UNRECORDED_SECONDS;
  const isShort = (file: string) => secondsOf(file) <= ALONE_SECONDS && !needsOwnProcess(file);
  const alone = files.filter((file) => !isShort(file)).map((file) => ({ file, seconds: secondsOf(file) }));
  const groups: { files: string[]; seconds: number }[] = [];
  // In the order of their paths: neighbours load the same code.
  for (const file of files.filter(isShort).sort()) {
    const seconds = secondsOf(file);
    const last = groups.at(-1);
    if (last && last.files.length < TOGETHER.files && last.seconds + seconds <= TOGETHER.seconds) {
      last.files.push(file);
      last.seconds += seconds;
    } else groups.push({ files: [file], seconds });
  }
  const grouped = groups.map(({ files, seconds }, i) => {
    const file = join(groupFolder, `short-files-${i + 1}.test.js`);
    // Imports that are awaited would register tests of one file while a test of another one runs, and then as its subtests.
    writeFileSync(file, files.map((path) => `import '${pathToFileURL(path)}';\n`).join(''));
    return { file, seconds };
  });
  return [...alone, ...grouped].sort((a, b) => b.seconds - a.seconds).map(({ file }) => file);
}
const processes = withGroups(files);

const counts = { passed: 0, failed: 0, skipped: 0 };
/** Milliseconds of the tests of each file, without the start of its process. */
const durations = new Map<string, number>();
function addDuration({
  file,
  nesting,
  details,
}: {
  file?: string;
  nesting: number;
  details: { duration_ms: number };
}): void {
  if (nesting > 0 || file === undefined) return;
  const path = relative(process.cwd(), file);
  durations.set(path, (durations.get(path) ?? 0) + details.duration_ms);
}

/** Lines with the files whose tests took longest. */
function slowestFiles(): string[] {
  return [...durations]
    .sort(([, a], [, b]) => b - a)
    .slice(0, 30)
    .map(([file, ms]) => `${(ms / 1000).toFixed(1).padStart(7)} s  ${file}`);
}
const isFile = (name: string) =>
  processes.includes(name) || processes.some((file) => relative(process.cwd(), file) === name);

/** When the running files began, by path. */
const running = new Map<string, number>();
const begun = performance.now();
const eachMinute = setInterval(() => {
  const now = performance.now();
  const nameOfProcess = (file: string) => (file.includes(groupFolder) ? basename(file) : nameOf(file));
  const files = [...running].map(
    ([file, since]) => `${nameOfProcess(file)} ${Math.round((now - since) / 1000)} s`,
  );
  const { passed, failed } = counts;
  console.log(
    `[${Math.round((now - begun) / 60_000)} min] ${passed} passed, ${failed} failed, running: ${files.join(', ')}`,
  );
}, 60_000);

// One file more than there are cores, because tests often wait for a process or a timer.
const stream = run({ files: processes, concurrency: availableParallelism() + 1, timeout: 1_200_000 });
stream.on('test:dequeue', ({ name }) => {
  if (isFile(name)) running.set(name, performance.now());
});
stream.on('test:complete', ({ name }) => running.delete(name));
stream.on('test:pass', (passed) => {
  const { name, skip, details } = passed;
  addDuration(passed);
  if (details.type === 'suite' || isFile(name)) return;
  if (skip !== undefined && skip !== false) counts.skipped++;
  else counts.passed++;
});
stream.on('test:fail', (failed) => {
  const { details } = failed;
  addDuration(failed);
  if (details.type !== 'suite') counts.failed++;
});
stream.compose(new spec()).pipe(process.stdout);
await new Promise((resolve) => stream.once('close', resolve));
clearInterval(eachMinute);

if (isRecorded) {
  const seconds = { ...recorded };
  for (const [file, ms] of durations) seconds[nameOf(file)] = Math.round(ms / 1000);
  const kept = Object.entries(seconds)
    .filter(([name, duration]) => duration > 0 && all.some((file) => nameOf(join(root, file)) === name))
    .sort(([nameA, a], [nameB, b]) => b - a || (nameA < nameB ? -1 : 1));
  writeFileSync(recordPath, `${JSON.stringify(Object.fromEntries(kept), null, 2)}\n`);
}

process.on('exit', () => {
  const { passed, failed, skipped } = counts;
  if (files.length > 30) console.log(['The slowest test files:', ...slowestFiles()].join('\n'));
  console.log(`${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`);
  if (failed > 0 || passed === 0) process.exitCode = 1;
});
