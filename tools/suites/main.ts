/**
 * Runs the raster files and CQL2 examples of checkouts of public test suites, and prints a table of the outcomes.
 *
 *     npm run suites -- ../gdal/autotest ../rasterio/tests ../ogcapi-features/cql2
 *
 * GDAL is the reference for rasters: it must be on PATH.
 */
import { spawn, spawnSync } from 'node:child_process';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { mapConcurrent } from '../../src/async/index.js';
import { messageOf } from '../../src/errors.js';
import { cql2Outcome, isCql2Example } from './cql2.js';
import { isRasterFile, type Outcome } from './raster.js';

/** A file that takes longer counts as a hang: the largest files take seconds. */
const TIME_LIMIT_MS = 120_000;
/** Memory limit of the process that reads one file. */
const MEMORY_LIMIT_KIB = 4 * 1024 * 1024;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { help: { type: 'boolean', short: 'h' }, all: { type: 'boolean' } },
});
if (values.help || positionals.length === 0) {
  console.log(
    'npm run suites -- [--all] FOLDER...   --all lists every file, not only those that need a look',
  );
  process.exit(values.help ? 0 : 2);
}
for (const path of positionals) {
  try {
    statSync(path);
  } catch (error) {
    console.error(`error: ${messageOf(error)}`);
    process.exit(2);
  }
}
if (spawnSync('gdalinfo', ['--version']).status !== 0) {
  console.error('error: GDAL is not on PATH');
  process.exit(1);
}

const files = positionals.flatMap(filesBelow);
const rasters = files.filter(isRasterFile);
const outcomes = new Map<string, string[]>();
let done = 0;

function note(kind: string, outcome: Outcome, path: string): void {
  const key = `${kind}\t${outcome.name}`;
  outcomes.set(key, [...(outcomes.get(key) ?? []), path]);
  if (values.all || outcome.look)
    console.log(`${outcome.name}: ${path}${outcome.detail ? ` (${outcome.detail})` : ''}`);
}

await mapConcurrent(rasters, availableParallelism(), async (path) => {
  note(extname(path).slice(1).toLowerCase() || 'no extension', await rasterOutcome(path), path);
  if (process.stderr.isTTY) process.stderr.write(`\r${++done} of ${rasters.length} rasters`);
});
for (const path of files.filter(isCql2Example)) {
  const language = path.endsWith('.json') ? 'CQL2 JSON' : 'CQL2 text';
  note(language, cql2Outcome(readFileSync(path, 'utf8'), path.endsWith('.json')), path);
}
printTable();

function filesBelow(path: string): string[] {
  const status = statSync(path);
  if (status.isFile()) return [path];
  if (!status.isDirectory()) return [];
  const names = readdirSync(path).filter((name) => name !== '.git' && name !== 'node_modules');
  return names.sort().flatMap((name) => filesBelow(join(path, name)));
}

/** Reads each file in a separate process, so that a crash, a hang or a lack of memory becomes an outcome. */
function rasterOutcome(path: string): Promise<Outcome> {
  const program = fileURLToPath(new URL('./raster-main.js', import.meta.url));
  return new Promise((resolve) => {
    const child = spawn(process.execPath, [program, path], { stdio: ['ignore', 'pipe', 'pipe'] });
    let output = '';
    let errors = '';
    let stopped: Outcome | undefined;
    const stop = (outcome: Outcome) => {
      stopped = outcome;
      child.kill('SIGKILL');
    };
    const timer = setTimeout(() => stop({ name: 'hang', look: true }), TIME_LIMIT_MS);
    const watch = setInterval(() => {
      const used = residentKib(child.pid);
      if (used > MEMORY_LIMIT_KIB) stop({ name: 'memory without bound', look: true });
    }, 500);
    child.stdout.on('data', (text) => {
      output += text;
    });
    child.stderr.on('data', (text) => {
      errors += text;
    });
    child.on('close', (code, signal) => {
      clearTimeout(timer);
      clearInterval(watch);
      if (stopped) return resolve(stopped);
      const line = output.split('\n').find((text) => text.startsWith('{'));
      if (code === 0 && line) return resolve(JSON.parse(line));
      const detail = `${signal ?? `exit code ${code}`}: ${errors.trim().split('\n').slice(0, 3).join(' / ').slice(0, 300)}`;
      resolve({ name: 'crash', look: true, detail });
    });
  });
}

function residentKib(pid: number | undefined): number {
  try {
    return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0);
  } catch {
    // The process has ended, or the system has no /proc.
    return 0;
  }
}

function printTable(): void {
  const rows = [...outcomes].map(([key, paths]) => [...key.split('\t'), paths.length] as const);
  const kinds = [...new Set(rows.map(([kind]) => kind))].sort();
  const names = [...new Set(rows.map(([, name]) => name))].sort();
  console.log(`\n| outcome | ${kinds.join(' | ')} |\n|---|${kinds.map(() => '---').join('|')}|`);
  for (const name of names) {
    const counts = kinds.map((kind) => rows.find((row) => row[0] === kind && row[1] === name)?.[2] ?? 0);
    console.log(`| ${name} | ${counts.join(' | ')} |`);
  }
}
