/** Determines whether the resource usage of a server stays constant over hours. */

export interface Series {
  name: string;
  /** Growth that counts as none, as a fraction of the median and in the unit of the series: the larger of the two. */
  tolerance: { share: number; absolute: number };
  /** Undefined if the value is unknown at a time. */
  values: (number | undefined)[];
}

export interface TrendResult {
  name: string;
  median: number;
  /** Growth by the robust slope, over the last two thirds of the time. */
  growth: number;
  allowed: number;
  isFlat: boolean;
}

/** The first third is ignored, because caches fill and code is compiled. `seconds` are the times of the values. */
export function judgeTrend(seconds: number[], { name, tolerance, values }: Series): TrendResult {
  const first = Math.floor(values.length / 3);
  const points = values.flatMap((value, i) =>
    i < first || value === undefined ? [] : [{ at: seconds[i]!, value }],
  );
  const middle = median(points.map(({ value }) => value));
  const span = points.length > 0 ? points.at(-1)!.at - points[0]!.at : 0;
  const growth = slope(points) * span;
  const allowed = Math.max(tolerance.absolute, tolerance.share * middle);
  return { name, median: middle, growth, allowed, isFlat: growth <= allowed };
}

/** The median of the slopes between all pairs of points (Theil and Sen), which outliers do not move. 0 for fewer than two points. */
function slope(points: { at: number; value: number }[]): number {
  // For a long series, a sample of the points is enough.
  const step = Math.ceil(points.length / MAX_POINTS);
  const some = points.filter((_, i) => i % step === 0);
  const slopes: number[] = [];
  for (const [i, a] of some.entries())
    for (const b of some.slice(i + 1)) slopes.push((b.value - a.value) / (b.at - a.at));
  return slopes.length === 0 ? 0 : median(slopes);
}

const MAX_POINTS = 400;

function median(values: number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted.length === 0
    ? Number.NaN
    : (sorted[Math.floor((sorted.length - 1) / 2)]! + sorted[Math.floor(sorted.length / 2)]!) / 2;
}
