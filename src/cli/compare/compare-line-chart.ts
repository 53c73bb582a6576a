/** A line chart with a colour and dash pattern for each mode. */
import { type AxisScale, type Html, html } from '../../html/index.js';

export interface Line {
  /** Index of its mode, which selects the colour and the dash pattern. */
  index: number;
  points: [x: number, y: number][];
}

interface Axis {
  scale: AxisScale;
  label(tick: number): string;
  title: string;
}

const WIDTH = 640;
const HEIGHT = 250;
const LEFT = 52;
const RIGHT = 10;
const TOP = 8;
const BOTTOM = 34;

export function lineChart(alt: string, lines: Line[], x: Axis, y: Axis): Html {
  const xOf = (value: number) => LEFT + x.scale.position(value) * (WIDTH - LEFT - RIGHT);
  const yOf = (value: number) => HEIGHT - BOTTOM - y.scale.position(value) * (HEIGHT - TOP - BOTTOM);
  const [left, right, top, bottom] = [LEFT, WIDTH - RIGHT, TOP, HEIGHT - BOTTOM];
  const rules = y.scale.ticks.map((tick) => {
    const at = yOf(tick).toFixed(1);
    return html`<line x1="${left}" x2="${right}" y1="${at}" y2="${at}"/><text x="${left - 6}" y="${at}" dy="3.5" text-anchor="end">${y.label(tick)}</text>`;
  });
  const ticks = x.scale.ticks.map((tick) => {
    const at = xOf(tick).toFixed(1);
    return html`<line x1="${at}" x2="${at}" y1="${top}" y2="${bottom}"/><text x="${at}" y="${bottom + 14}" text-anchor="middle">${x.label(tick)}</text>`;
  });
  const paths = lines.map(({ index, points }) => {
    const path = points
      .map(([px, py], i) => `${i === 0 ? 'M' : 'L'}${xOf(px).toFixed(1)} ${yOf(py).toFixed(1)}`)
      .join('');
    // A line with one point is drawn as a dot.
    return html`<path class="mode-${index}" d="${path}${points.length === 1 && 'h0'}"/>`;
  });
  return html`<figure class="lines"><svg viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img" aria-label="${alt}"><g class="axes">${rules}${ticks}</g>
<text x="${(left + right) / 2}" y="${HEIGHT - 4}" text-anchor="middle">${x.title}</text>${paths}</svg>
<figcaption>${y.title}</figcaption></figure>
`;
}
