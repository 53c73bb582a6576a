/** Scores of curves: how soon each start reaches the loss of a fresh start, and its lowest loss. */
import { median } from '../support/bench.js';
import type { Curve } from './curves.js';

/** A start over all places and seeds. A target that is not reached is Infinity. */
export interface StartScore {
  start: string;
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
    curves.filter(({ start }) => start === 'none'),
    ({ geocode }) => geocode,
  );
  return new Map([...fresh].map(([geocode, own]) => [geocode, median(own.map(leastOf))]));
}

/** Epochs to the target of its place. */
const epochsTo = (fresh: Map<string, number>, { geocode, losses }: Curve) => {
  const at = losses.findIndex((loss) => loss <= MARGIN * fresh.get(geocode)!);
  return at < 0 ? Infinity : 1 + at;
};

export function scoresOf(curves: Curve[]): StartScore[] {
  const fresh = freshLosses(curves);
  const epochsOf = (curve: Curve) => epochsTo(fresh, curve);
  return [...groupBy(curves, ({ start }) => start)].map(([start, own]) => ({
    start,
    epochs: own.map(epochsOf),
    cpu: own.map((curve) => curve.cpu[epochsOf(curve) - 1] ?? Infinity),
    least: own.map((curve) => leastOf(curve) / fresh.get(curve.geocode)!),
    bySeed: new Map(
      [...groupBy(own, ({ seed }) => seed)].map(([seed, some]) => [seed, median(some.map(epochsOf))]),
    ),
  }));
}

/** Of starts from each other place, the curves of that which came soonest to the target of the place, in the median over its seeds. */
export function bestInHindsight(curves: Curve[], others: Curve[], start: string): Curve[] {
  const fresh = freshLosses(curves);
  const soon = (own: Curve[]) => median(own.map((curve) => epochsTo(fresh, curve)));
  return [...groupBy(others, ({ geocode }) => geocode).values()].flatMap((ofPlace) => {
    const byParent = [...groupBy(ofPlace, (curve) => curve.start).values()];
    const best = byParent.reduce((a, b) => (soon(b) < soon(a) ? b : a));
    return best.map((curve) => ({ ...curve, start }));
  });
}

/** Median validation loss after each epoch over that of a fresh start at its best. */
export function medianCurve(curves: Curve[], start: string): number[] {
  const fresh = freshLosses(curves);
  const own = curves.filter((curve) => curve.start === start);
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
