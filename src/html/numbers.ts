/** Numbers in reports: formats of numbers and times, and axes of charts. */

const MISSING = '–';
const MINUS = '−';
const SUPERSCRIPTS = '⁰¹²³⁴⁵⁶⁷⁸⁹';

/** Three significant digits, such as 0.00213. Very small and large values have two, such as 8.1 × 10⁻⁶. */
export function significant(value: number): string {
  if (!Number.isFinite(value)) return MISSING;
  const size = Math.abs(value);
  if (size === 0) return '0';
  if (size >= 1e-4 && size < 1e6) return signed(value, Math.max(0, 2 - Math.floor(Math.log10(size))));
  const [digits, exponent] = value.toExponential(1).split('e');
  return `${digits!.replace('-', MINUS)} × ${powerOfTen(Number(exponent))}`;
}

function powerOfTen(exponent: number): string {
  const digits = [...String(Math.abs(exponent))].map((digit) => SUPERSCRIPTS[Number(digit)]).join('');
  return `10${exponent < 0 ? '⁻' : ''}${digits}`;
}

/** Formats the numbers of a column with the same decimals: two digits of the smallest positive value, at most five decimals. */
export function formatColumn(values: number[]): (value: number) => string {
  const least = values.reduce((low, value) => (value > 0 && value < low ? value : low), 1);
  const decimals = Math.min(5, Math.max(2, 1 - Math.floor(Math.log10(least))));
  return (value) => (value > 0 && value < 10 ** -decimals ? significant(value) : signed(value, decimals));
}

/** A tick of a logarithmic axis, such as 0.02 or 10⁻⁵. */
export function logTick(value: number): string {
  if (value >= 1e-3 && value < 1e4) return String(Number(value.toPrecision(1)));
  const exponent = Math.floor(Math.log10(value) + 1e-9);
  const digit = Math.round(value / 10 ** exponent);
  return digit === 1 ? powerOfTen(exponent) : `${digit}·${powerOfTen(exponent)}`;
}

/** A fixed number of decimals with a true minus sign. */
export function signed(value: number, decimals: number): string {
  return Number.isFinite(value) ? value.toFixed(decimals).replace('-', MINUS) : MISSING;
}

/** R² with two decimals. */
export const formatR2 = (value: number) => signed(value, 2);

/** A percentage without the percent sign. Only exactly 100 is shown as 100, and only 0 as 0. */
export function formatPercentValue(value: number | null): string {
  if (value === null || !Number.isFinite(value)) return MISSING;
  if (value > 0 && value < 0.5) return '<1';
  return String(value < 100 ? Math.min(99, Math.round(value)) : Math.round(value));
}

/** Formats an ISO time as `12 May 2024`. A text that is not a time is returned unchanged. */
export function dateText(time: string): string {
  return inUtc(time, { day: 'numeric', month: 'short', year: 'numeric' });
}

/** Formats an ISO time as `12 May 2024, 10:20 UTC`. */
export function dateTime(time: string): string {
  return inUtc(time, {
    day: 'numeric',
    month: 'long',
    year: 'numeric',
    hour: '2-digit',
    minute: '2-digit',
    timeZoneName: 'short',
  });
}

/** "5.2 s", "3 min 20 s", "2 h 5 min". */
export function formatDuration(seconds: number): string {
  if (seconds < 9.95) return `${seconds.toFixed(1)} s`;
  const whole = Math.round(seconds);
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  const minutes = Math.round(whole / 60);
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

function inUtc(time: string, style: Intl.DateTimeFormatOptions): string {
  const date = new Date(time);
  if (Number.isNaN(date.getTime())) return time;
  return new Intl.DateTimeFormat('en-GB', { ...style, timeZone: 'UTC' }).format(date);
}

export function median(values: number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/** An axis of a chart: positions of values and ticks. */
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
