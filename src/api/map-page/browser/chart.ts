/// <reference lib="dom" />
/** A line of values over time, as SVG. */

export interface Sample {
  /** Milliseconds since 1970. */
  time: number;
  value: number;
}

const [WIDTH, HEIGHT] = [300, 150];
const PLOT = { left: 54, right: 290, top: 10, bottom: 125 };

/** At least one sample; `label` says what the values are. */
export function chartOf(samples: Sample[], label: string): SVGElement {
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
  const svg = element('svg', { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, class: 'chart', role: 'img' });
  svg.setAttribute('aria-label', `${label} by date, ${samples.length} dates`);
  const text = (at: [number, number], anchor: string, content: string) => {
    const node = element('text', { x: at[0], y: at[1], 'text-anchor': anchor });
    node.textContent = content;
    svg.append(node);
  };
  for (const value of [...new Set([y.low, (y.low + y.high) / 2, y.high])]) {
    svg.append(element('path', { class: 'rule', d: `M${PLOT.left} ${y.at(value)}H${PLOT.right}` }));
    text([PLOT.left - 5, y.at(value) + 4], 'end', short(value));
  }
  text([PLOT.left, HEIGHT - 8], 'start', day(x.low));
  if (x.high > x.low) text([PLOT.right, HEIGHT - 8], 'end', day(x.high));
  const points = samples.map(({ time, value }) => [x.at(time), y.at(value)]);
  svg.append(element('path', { class: 'line', d: `M${points.map((point) => point.join(' ')).join('L')}` }));
  for (const [i, [cx, cy]] of points.entries()) {
    const dot = element('circle', { class: 'dot', cx, cy, r: 3 });
    const title = element('title', {});
    title.textContent = `${day(samples[i].time)}: ${short(samples[i].value)}`;
    dot.append(title);
    svg.append(dot);
  }
  return svg;
}

/** A linear scale; a single value lies in its middle. */
function scale(values: number[], from: number, to: number) {
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const at = (value: number) =>
    low === high ? (from + to) / 2 : from + ((value - low) / (high - low)) * (to - from);
  return { low, high, at };
}

function element(name: string, attributes: Record<string, string | number>): SVGElement {
  const node = document.createElementNS('http://www.w3.org/2000/svg', name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, String(value));
  return node;
}

const day = (time: number) => new Date(time).toISOString().slice(0, 10);
/** Three digits that count. */
const short = (value: number) => String(Number(value.toPrecision(3)));
