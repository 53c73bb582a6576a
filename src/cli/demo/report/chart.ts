/** What the small charts share: their frame, and their place in a grid of panels. */
import { type Html, html, type Scale } from '../../../html/index.js';

/** Units of a panel's view box; panels are drawn at about one pixel a unit, their plots are square. */
export const PANEL = { width: 180, height: 166, left: 34, right: 6, top: 6, bottom: 20 };

/** This many panels are shown at once; the rest is folded away. */
const MAX_PANELS = 24;

export interface Axis {
  scale: Scale;
  label(tick: number): string;
}

export const xOf = (share: number) => PANEL.left + share * (PANEL.width - PANEL.left - PANEL.right);
export const yOf = (share: number) =>
  PANEL.height - PANEL.bottom - share * (PANEL.height - PANEL.top - PANEL.bottom);

export function pathOf(points: [x: number, y: number][]): string {
  return points.map(([x, y], i) => `${i === 0 ? 'M' : 'L'}${x.toFixed(1)} ${y.toFixed(1)}`).join('');
}

/** A dot at each point, to be drawn with round line caps. */
export function dotsOf(points: [x: number, y: number][]): string {
  return points.map(([x, y]) => `M${x.toFixed(1)} ${y.toFixed(1)}h0`).join('');
}

/** Grid lines and tick labels. */
export function axes(x: Axis, y: Axis): Html {
  const [left, right, top, bottom] = [xOf(0), xOf(1), yOf(1), yOf(0)];
  return html`<g class="axes">${y.scale.ticks.map((tick) => {
    const at = yOf(y.scale.at(tick)).toFixed(1);
    return html`<line x1="${left}" x2="${right}" y1="${at}" y2="${at}"/><text x="${left - 5}" y="${at}" dy="3.2" text-anchor="end">${y.label(tick)}</text>`;
  })}${x.scale.ticks.map((tick) => {
    const at = xOf(x.scale.at(tick)).toFixed(1);
    return html`<line class="upright" x1="${at}" x2="${at}" y1="${top}" y2="${bottom}"/><text x="${at}" y="${bottom + 13}" text-anchor="middle">${x.label(tick)}</text>`;
  })}</g>`;
}

export function panel(title: Html, note: Html | null, alt: string, content: Html): Html {
  return html`<figure class="panel"><figcaption><b>${title}</b> ${note}</figcaption>
<svg viewBox="0 0 ${PANEL.width} ${PANEL.height}" role="img" aria-label="${alt}">${content}</svg></figure>
`;
}

export function panels(all: Html[]): Html {
  const rest = all.slice(MAX_PANELS);
  return html`<div class="panels">${all.slice(0, MAX_PANELS)}</div>${
    rest.length > 0 &&
    html`<details><summary>Show the other ${rest.length} places</summary><div class="panels">${rest}</div></details>`
  }`;
}
