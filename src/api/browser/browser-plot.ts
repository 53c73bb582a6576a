/// <reference lib="dom" />
/** Shared parts of the charts and of the page: sizes, scales, axes, number formats, elements. */

const WIDTH = 300;
const HEIGHT = 150;
const PLOT = { left: 54, right: 290, top: 10, bottom: 125 };

interface Scale {
  low: number;
  high: number;
  at(value: number): number;
}

/** Scales whose ends have a margin to the ends of the axis, in pixels. */
export const xScale = (values: number[], margin: number) =>
  scale(values, PLOT.left + margin, PLOT.right - margin);
export const yScale = (values: number[], margin: number) =>
  scale(values, PLOT.bottom - margin, PLOT.top + margin);

/** A linear scale. A single value lies in the middle. */
function scale(values: number[], from: number, to: number): Scale {
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const at = (value: number) =>
    low === high ? (from + to) / 2 : from + ((value - low) / (high - low)) * (to - from);
  return { low, high, at };
}

/** An empty chart with grid lines at the lowest, middle and highest value, and labels at the ends of the x axis. */
export function frame(label: string, x: Scale, y: Scale, nameOf: (value: number) => string): SVGElement {
  const svg = element('svg', { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, class: 'chart', role: 'img' });
  svg.setAttribute('aria-label', label);
  const text = (at: [number, number], anchor: string, content: string) => {
    const node = element('text', { x: at[0], y: at[1], 'text-anchor': anchor });
    node.textContent = content;
    svg.append(node);
  };
  for (const value of [...new Set([y.low, (y.low + y.high) / 2, y.high])]) {
    svg.append(element('path', { class: 'rule', d: `M${PLOT.left} ${y.at(value)}H${PLOT.right}` }));
    text([PLOT.left - 5, y.at(value) + 4], 'end', short(value));
  }
  text([PLOT.left, HEIGHT - 8], 'start', nameOf(x.low));
  if (x.high > x.low) text([PLOT.right, HEIGHT - 8], 'end', nameOf(x.high));
  return svg;
}

/** An element of the page with these properties. */
export const html = <K extends keyof HTMLElementTagNameMap>(
  name: K,
  properties: Partial<HTMLElementTagNameMap[K]> = {},
): HTMLElementTagNameMap[K] => Object.assign(document.createElement(name), properties);

/** An element of a chart. */
export function element(name: string, attributes: Record<string, string | number>): SVGElement {
  const node = document.createElementNS('http://www.w3.org/2000/svg', name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, String(value));
  return node;
}

/** Adds a tooltip to an element. */
export function titled(node: SVGElement, content: string): SVGElement {
  const title = element('title', {});
  title.textContent = content;
  node.append(title);
  return node;
}

export const day = (time: number) => new Date(time).toISOString().slice(0, 10);
/** Three significant digits. */
export const short = (value: number) => String(Number(value.toPrecision(3)));
