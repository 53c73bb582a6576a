/** The interface of benchmarks, and helpers for their figures. */
import { spawnSync } from 'node:child_process';
import { availableParallelism, cpus, release, totalmem, type } from 'node:os';
import { placesText, ratioText } from '../../src/cli/compare/tables.js';
import { comparePlaces, type PlaceComparison } from '../../src/utils/bootstrap.js';

export interface BenchOptions {
  /** A small run that shows that it works, for continuous integration. */
  short: boolean;
  /** Threads of tilewright. One is fair to peers that use one thread, and on cores that share their units. */
  threads: number;
  /** Number of tiles of the benchmarks of searches and of the index; a million if undefined. */
  rows?: number;
  /** Receives log lines. */
  log: (line: string) => void;
}

/** One figure of ours beside those of other programs; more is better. `ratio` is ours / theirs. */
export interface BenchResult {
  name: string;
  unit: string;
  ours: number;
  peers: Record<string, number>;
  ratio: Record<string, number>;
}

export interface Machine {
  cpu: string;
  cores: number;
  memoryGB: number;
  system: string;
  node: string;
}

export function machine(): Machine {
  return {
    cpu: cpus()[0]?.model.trim() ?? 'unknown',
    cores: availableParallelism(),
    memoryGB: Math.round(totalmem() / 1e9),
    system: `${type()} ${release()}`,
    node: process.version,
  };
}

/** Compares two ways at the same places: the errors of several runs of each, such as those of seeds, by place. */
export function compareErrors(
  ours: readonly ReadonlyMap<string, number>[],
  theirs: readonly ReadonlyMap<string, number>[],
): PlaceComparison {
  const byPlace = (runs: typeof ours) => {
    const errors = new Map<string, number[]>();
    for (const run of runs)
      for (const [place, error] of run) errors.set(place, [...(errors.get(place) ?? []), error]);
    return errors;
  };
  return comparePlaces(byPlace(ours), byPlace(theirs));
}

/** Cells of a table: the ratio of the errors with its interval, the places where the first is better, and the verdict. */
export const verdictCells = (compared: PlaceComparison): [ratio: string, places: string, verdict: string] => [
  ratioText(compared),
  placesText(compared),
  compared.verdict,
];

export function median(values: number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

export function result(
  name: string,
  unit: string,
  ours: number,
  peers: Record<string, number> = {},
): BenchResult {
  const round = (value: number) => Number(value.toPrecision(4));
  const entries = Object.entries(peers);
  return {
    name,
    unit,
    ours: round(ours),
    peers: Object.fromEntries(entries.map(([peer, value]) => [peer, round(value)])),
    ratio: Object.fromEntries(entries.map(([peer, value]) => [peer, round(ours / value)])),
  };
}

export interface Spent<T> {
  value: T;
  /** CPU time of all threads of this process. */
  cpuSeconds: number;
  wallSeconds: number;
}

export async function spend<T>(work: () => Promise<T>): Promise<Spent<T>> {
  const cpu = process.cpuUsage();
  const wall = performance.now();
  const value = await work();
  const { user, system } = process.cpuUsage(cpu);
  return { value, cpuSeconds: (user + system) / 1e6, wallSeconds: (performance.now() - wall) / 1e3 };
}

export function isInstalled(program: string): boolean {
  return spawnSync(program, ['--version']).status === 0;
}

/** CPU seconds of another program with its threads, as the shell counts them. */
export function cpuSecondsOf(program: string, args: string[]): number {
  const { status, stdout, stderr } = spawnSync(
    'sh',
    ['-c', '"$@" >/dev/null && times', 'sh', program, ...args],
    {
      encoding: 'utf8',
      env: { ...process.env, GDAL_PAM_ENABLED: 'NO', LC_ALL: 'C' },
    },
  );
  if (status !== 0) throw new Error(`${program} failed: ${stderr}`);
  // The last line is user and system time of the children, such as 0m1.23s 0m0.45s.
  const children = stdout.trim().split('\n').at(-1)!;
  return [...children.matchAll(/(\d+)m([\d.]+)s/g)].reduce(
    (sum, [, m, s]) => sum + Number(m) * 60 + Number(s),
    0,
  );
}
