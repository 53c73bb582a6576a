/** What curves say: how soon each policy comes to what a fresh start comes to, and how far it goes. */
import type { TransferPolicy } from '../../src/training/transfer/policies.js';
import { median } from '../bench.js';
import type { Curve } from './curves.js';

/** A policy over all places and seeds. What is not reached is Infinity. */
export interface PolicyScore {
  policy: TransferPolicy;
  /** To the target of the place. */
  epochs: number[];
  cpu: number[];
  /** Least validation loss over that of a fresh start, in the median over its seeds. */
  least: number[];
  /** By seed: the median over places of the epochs. */
  bySeed: Map<number, number>;
}

/** Above the median least loss of a fresh start by so much. */
const MARGIN = 1.05;

const leastOf = ({ losses }: Pick<Curve, 'losses'>) => Math.min(...losses);

/** The least validation loss of a fresh start, in the median over its seeds, by place. */
export function freshLosses(curves: Curve[]): Map<string, number> {
  const fresh = groupBy(
    curves.filter(({ policy }) => policy === 'none'),
    ({ geocode }) => geocode,
  );
  return new Map([...fresh].map(([geocode, own]) => [geocode, median(own.map(leastOf))]));
}

export function scoresOf(curves: Curve[]): PolicyScore[] {
  const fresh = freshLosses(curves);
  const reached = ({ geocode, losses }: Curve) =>
    losses.findIndex((loss) => loss <= MARGIN * fresh.get(geocode)!);
  const epochsOf = (curve: Curve) => (reached(curve) < 0 ? Infinity : 1 + reached(curve));
  return [...groupBy(curves, ({ policy }) => policy)].map(([policy, own]) => ({
    policy,
    epochs: own.map(epochsOf),
    cpu: own.map((curve) => curve.cpu[reached(curve)] ?? Infinity),
    least: own.map((curve) => leastOf(curve) / fresh.get(curve.geocode)!),
    bySeed: new Map(
      [...groupBy(own, ({ seed }) => seed)].map(([seed, some]) => [seed, median(some.map(epochsOf))]),
    ),
  }));
}

/** Median validation loss after each epoch over that of a fresh start at its best. */
export function medianCurve(curves: Curve[], policy: TransferPolicy): number[] {
  const fresh = freshLosses(curves);
  const own = curves.filter((curve) => curve.policy === policy);
  return own[0]!.losses.map((_, epoch) =>
    median(own.map(({ geocode, losses }) => losses[epoch]! / fresh.get(geocode)!)),
  );
}

/** The adjusted Rand index of two groupings of the same items: 1 where they are the same, about 0 by chance (Hubert and Arabie 1985). */
export function adjustedRand(a: string[], b: string[]): number {
  const pairs = (count: number) => (count * (count - 1)) / 2;
  const pairsWithin = (labels: string[]) =>
    [...groupBy(labels, (label) => label).values()].reduce((sum, same) => sum + pairs(same.length), 0);
  const both = pairsWithin(a.map((label, i) => `${label} ${b[i]}`));
  const [ofA, ofB, all] = [pairsWithin(a), pairsWithin(b), pairs(a.length)];
  const expected = (ofA * ofB) / all;
  const most = (ofA + ofB) / 2;
  return most === expected ? 1 : (both - expected) / (most - expected);
}

function groupBy<T, K>(items: T[], keyOf: (item: T) => K): Map<K, T[]> {
  const groups = new Map<K, T[]>();
  for (const item of items) groups.set(keyOf(item), [...(groups.get(keyOf(item)) ?? []), item]);
  return groups;
}
