/// <reference lib="dom" />
/** A line chart of values over time, as SVG. */
import { day, element, frame, short, titled, xScale, yScale } from './browser-plot.js';

interface Sample {
  /** Milliseconds since 1970. */
  time: number;
  value: number;
}

/** Needs at least one sample. `label` names the values. */
export function seriesChart(samples: Sample[], label: string): SVGElement {
  const times = samples.map(({ time }) => time);
  const values = samples.map(({ value }) => value);
  const [x, y] = [xScale(times, 6), yScale(values, 6)];
  const svg = frame(`${label} by date, ${samples.length} dates`, x, y, day);
  const points = samples.map(({ time, value }) => [x.at(time), y.at(value)]);
  svg.append(element('path', { class: 'line', d: `M${points.map((point) => point.join(' ')).join('L')}` }));
  for (const [i, [cx, cy]] of points.entries())
    svg.append(
      titled(
        element('circle', { class: 'dot', cx, cy, r: 3 }),
        `${day(samples[i].time)}: ${short(samples[i].value)}`,
      ),
    );
  return svg;
}
