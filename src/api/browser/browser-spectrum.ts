/// <reference lib="dom" />
/** A chart of the spectra of a point, with a line for each date. */
import { element, frame, html, short, titled, xScale, yScale } from './browser-plot.js';
import type { Spectra } from './browser-requests.js';

/** Lines in one chart; each has its own colour. */
const MAX_LINES = 5;

/** A spectrum in the order of wavelengths. Values of bad bands and of bands without data are null. */
interface Line {
  date: string;
  points: { nanometres: number; value: number | null }[];
}

/** The newest dates on which the point is clear, the newest first. */
export function linesOf({ sensors, spectra }: Spectra): Line[] {
  return spectra
    .toReversed()
    .map(({ datetime, sensor, values }): Line => {
      const points = sensors[sensor].bands.map(({ wavelength, bad_band: isBad }, band) => ({
        nanometres: wavelength,
        value: isBad ? null : values[band],
      }));
      points.sort((a, b) => a.nanometres - b.nanometres);
      return { date: datetime.slice(0, 10), points };
    })
    .filter(({ points }) => points.some(({ value }) => value !== null))
    .slice(0, MAX_LINES);
}

/** The chart of at least one line, and its key. */
export function spectrumChart(lines: Line[]): Element[] {
  const all = lines.flatMap(({ points }) => points.filter(({ value }) => value !== null));
  const wavelengths = all.map(({ nanometres }) => nanometres);
  const values = all.map(({ value }) => value!);
  const [x, y] = [xScale(wavelengths, 2), yScale(values, 2)];
  const dates = lines.length === 1 ? '1 date' : `${lines.length} dates`;
  const label = `Spectrum from ${short(x.low)} to ${short(x.high)} nm, ${dates}`;
  const svg = frame(label, x, y, (nanometres) => `${Math.round(nanometres)} nm`);
  const key = html('p', { className: 'key' });
  for (const [i, { date, points }] of lines.entries()) {
    const d = pathOf(
      points.map(({ nanometres, value }) => value !== null && [x.at(nanometres), y.at(value)]),
    );
    svg.append(titled(element('path', { class: `line line-${i + 1}`, d }), date));
    key.append(html('span', { className: `line-${i + 1}`, textContent: date }), ' ');
  }
  return [svg, key];
}

/** Connects adjacent points; a point between two gaps becomes a dot. */
function pathOf(points: (number[] | false)[]): string {
  let path = '';
  for (const [i, point] of points.entries()) {
    if (!point) continue;
    const [before, after] = [points[i - 1], points[i + 1]];
    path += `${before ? 'L' : 'M'}${point.map((one) => one.toFixed(2)).join(' ')}`;
    if (!before && !after) path += 'h0';
  }
  return path;
}
