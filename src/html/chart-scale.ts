/** Axes of charts: positions of values and ticks. */

export interface AxisScale {
  /** 0 at the low end, 1 at the high end; values beyond are clamped. */
  position(value: number): number;
  ticks: number[];
}

/** A linear axis, slightly wider than the range of its values, with two to seven ticks. */
export function linearScale(values: number[]): AxisScale & { step: number } {
  const [low, high] = extent(values, [0, 1]);
  const margin = (high - low) * 0.04 || 0.1;
  const [from, to] = [low - margin, high + margin];
  const step = niceStep((to - from) / 7);
  return {
    position: (value) => clamp((value - from) / (to - from)),
    ticks: multiplesBetween(from, to, step),
    step,
  };
}

/** The multiples of `step` from `from` to `to`. */
export function multiplesBetween(from: number, to: number, step: number): number[] {
  const first = Math.ceil(from / step);
  const size = Math.floor(to / step) - first + 1;
  return Array.from({ length: size }, (_, i) => (first + i) * step);
}

/** A logarithmic axis over the positive values, with ticks at powers of ten; short axes also have ticks at 2 and 5 times these. */
export function logScale(values: number[]): AxisScale {
  const [low, high] = extent(
    values.filter((value) => value > 0),
    [0.001, 1],
  ).map(Math.log10) as [number, number];
  const margin = Math.max((high - low) * 0.05, 0.05);
  const [from, to] = [low - margin, high + margin];
  const steps = to - from < 1.5 ? [1, 2, 5] : [1];
  const ticks: number[] = [];
  for (let power = Math.floor(from); power <= Math.ceil(to); power++) {
    for (const step of steps) {
      const tick = step * 10 ** power;
      if (Math.log10(tick) >= from && Math.log10(tick) <= to) ticks.push(tick);
    }
  }
  return { position: (value) => (value > 0 ? clamp((Math.log10(value) - from) / (to - from)) : 0), ticks };
}

/** The largest of 1, 2 or 5 times a power of ten that is not above a positive length. */
export function niceBelow(length: number): number {
  const power = 10 ** Math.floor(Math.log10(length));
  return [5, 2, 1].find((step) => step * power <= length * (1 + 1e-9))! * power;
}

/** The smallest of 1, 2 or 5 times a power of ten that is not below a positive length. */
export function niceStep(length: number): number {
  const power = 10 ** Math.floor(Math.log10(length));
  return [1, 2, 5, 10].find((step) => step * power >= length * (1 - 1e-9))! * power;
}

export function decimalsOf(step: number): number {
  return Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
}

function extent(values: number[], empty: [number, number]): [number, number] {
  const finite = values.filter(Number.isFinite);
  if (finite.length === 0) return empty;
  return finite.reduce(
    ([low, high], value) => [Math.min(low, value), Math.max(high, value)],
    [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY],
  );
}

const clamp = (share: number) => Math.min(1, Math.max(0, share));
