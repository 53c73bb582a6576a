/// <reference lib="dom" />
/** A line chart of values over time, as SVG. */
import { day, element, frame, PLOT, scale, short, titled } from './plot.js';

export interface Sample {
  /** Milliseconds since 1970. */
  time: number;
  value: number;
}

/** Needs at least one sample. `label` names the values. */
export function seriesChart(samples: Sample[], label: string): SVGElement {
  const x = scale(
    samples.map(({ time }) => time),
    PLOT.left + 6,
    PLOT.right - 6,
  );
  const y = scale(
    samples.map(({ value }) => value),
    PLOT.bottom - 6,
    PLOT.top + 6,
  );
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
