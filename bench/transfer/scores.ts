/** Scores of curves: how soon each start reaches the error of a fresh start, and its error, the validation loss at the selected epoch. */
import { compareErrors, median } from '../support/bench.js';
import type { Curve } from './curves.js';

/** Scores of a start over all places and seeds. Infinity stands for a target that is not reached. */
export interface StartScore {
  start: string;
  /** Epochs to the target of the place. */
  epochs: number[];
  cpu: number[];
  /** How the error, and the epochs to the target, compare with those of a fresh start at the same places. */
  error: ReturnType<typeof compareErrors>;
  sooner: ReturnType<typeof compareErrors>;
}

/** The target is the median error of a fresh start, multiplied by this factor. */
const MARGIN = 1.05;

const errorOf = ({ losses, chosen }: Curve) => losses[chosen.epoch - 1]!;

/** The error of a fresh start by place: the median over its seeds. */
export function freshErrors(curves: Curve[]): Map<string, number> {
  const fresh = groupBy(
    curves.filter(({ start }) => start === 'none'),
    ({ geocode }) => geocode,
  );
  return new Map([...fresh].map(([geocode, own]) => [geocode, median(own.map(errorOf))]));
}

/** Epochs until a curve reaches the target of its place. */
const epochsTo = (fresh: Map<string, number>, { geocode, losses }: Curve) => {
  const at = losses.findIndex((loss) => loss <= MARGIN * fresh.get(geocode)!);
  return at < 0 ? Infinity : 1 + at;
};

export function scoresOf(curves: Curve[]): StartScore[] {
  const fresh = freshErrors(curves);
  const epochsOf = (curve: Curve) => epochsTo(fresh, curve);
  // A target that is not reached counts as reached in the epoch after the last one.
  const atMost = (curve: Curve) => Math.min(epochsOf(curve), curve.losses.length + 1);
  const starts = groupBy(curves, ({ start }) => start);
  const compared = (own: Curve[], of: (curve: Curve) => number) => {
    const [ours, theirs] = [own, starts.get('none')!].map((all) =>
      all.map((curve) => new Map([[curve.geocode, of(curve)]])),
    );
    return compareErrors(ours!, theirs!);
  };
  return [...starts].map(([start, own]) => ({
    start,
    epochs: own.map(epochsOf),
    cpu: own.map((curve) => curve.cpu[epochsOf(curve) - 1] ?? Infinity),
    error: compared(own, errorOf),
    sooner: compared(own, atMost),
  }));
}

/** For each place: the curves of the parent that led to the target of the place in the fewest epochs, in the median over its seeds. */
export function bestInHindsight(curves: Curve[], others: Curve[], start: string): Curve[] {
  const fresh = freshErrors(curves);
  const soon = (own: Curve[]) => median(own.map((curve) => epochsTo(fresh, curve)));
  return [...groupBy(others, ({ geocode }) => geocode).values()].flatMap((ofPlace) => {
    const byParent = [...groupBy(ofPlace, (curve) => curve.start).values()];
    const best = byParent.reduce((a, b) => (soon(b) < soon(a) ? b : a));
    return best.map((curve) => ({ ...curve, start }));
  });
}

/** Median validation loss after each epoch, relative to the error of a fresh start. */
export function medianCurve(curves: Curve[], start: string): number[] {
  const fresh = freshErrors(curves);
  const own = curves.filter((curve) => curve.start === start);
  return own[0]!.losses.map((_, epoch) =>
    median(own.map(({ geocode, losses }) => losses[epoch]! / fresh.get(geocode)!)),
  );
}

/** The adjusted Rand index of two groupings of the same items: 1 if they are equal, about 0 by chance (Hubert and Arabie 1985). */
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
