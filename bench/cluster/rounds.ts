/**
 * Figures of this checkout's server, and in alternation those of another one: TILEWRIGHT_BENCH_PEER names its program, such as
 * /path/to/dist/command/main.js. Each measurement has servers, a store and an etcd of its own.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type BenchResult, median, result } from '../support/bench.js';
import { COMMAND, type Place, startEtcd } from './servers.js';

export interface Figure {
  name: string;
  unit: string;
  value: number;
}

const PEER = 'the other checkout';

/** Medians over some rounds, in each of which each side is measured once. */
export async function inAlternation(
  rounds: number,
  log: (line: string) => void,
  measure: (place: Place) => Promise<Figure[]>,
): Promise<BenchResult[]> {
  const peer = process.env.TILEWRIGHT_BENCH_PEER;
  const sides = [{ name: 'ours', program: COMMAND }, ...(peer ? [{ name: PEER, program: peer }] : [])];
  const values = sides.map(() => new Map<string, number[]>());
  const units = new Map<string, string>();
  for (let round = 0; round < rounds; round++)
    for (const [i, { name, program }] of sides.entries()) {
      const folder = await mkdtemp(join(tmpdir(), 'tilewright-cluster-'));
      const etcd = await startEtcd(folder);
      try {
        for (const figure of await measure({ folder, etcd, program })) {
          units.set(figure.name, figure.unit);
          const known = values[i]!.get(figure.name) ?? [];
          values[i]!.set(figure.name, [...known, figure.value]);
          log(`round ${round + 1}, ${name}: ${figure.name}: ${figure.value.toPrecision(4)} ${figure.unit}`);
        }
      } finally {
        await etcd.stop();
        await rm(folder, { recursive: true, force: true });
      }
    }
  return [...units].map(([name, unit]) => {
    const [ours, theirs] = values.map((of) => median(of.get(name) ?? []));
    return result(name, unit, ours!, theirs === undefined ? {} : { [PEER]: theirs });
  });
}

/** A value below which a share of the others are. */
export function quantile(values: number[], share: number): number {
  return values.toSorted((a, b) => a - b)[Math.min(values.length - 1, Math.floor(share * values.length))]!;
}
