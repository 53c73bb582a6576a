/** Shared parts of the small charts: the frame and the grid of panels. */
import { type AxisScale, type Html, html } from '../html/index.js';

/** Units of a panel's view box; panels are drawn at about one pixel a unit, their plots are square. */
export const PANEL_LAYOUT = { width: 180, height: 166, left: 34, right: 6, top: 6, bottom: 20 };

/** This many panels are visible; the others are collapsed. */
const MAX_PANELS = 24;

export interface ChartAxis {
  scale: AxisScale;
  label(tick: number): string;
}

export const toX = (share: number) =>
  PANEL_LAYOUT.left + share * (PANEL_LAYOUT.width - PANEL_LAYOUT.left - PANEL_LAYOUT.right);
export const toY = (share: number) =>
  PANEL_LAYOUT.height -
  PANEL_LAYOUT.bottom -
  share * (PANEL_LAYOUT.height - PANEL_LAYOUT.top - PANEL_LAYOUT.bottom);

export function svgPath(points: [x: number, y: number][]): string {
  return points.map(([x, y], i) => `${i === 0 ? 'M' : 'L'}${x.toFixed(1)} ${y.toFixed(1)}`).join('');
}

/** A dot at each point, for drawing with round line caps. */
export function svgDots(points: [x: number, y: number][]): string {
  return points.map(([x, y]) => `M${x.toFixed(1)} ${y.toFixed(1)}h0`).join('');
}

/** Grid lines and tick labels. */
export function axes(x: ChartAxis, y: ChartAxis): Html {
  const [left, right, top, bottom] = [toX(0), toX(1), toY(1), toY(0)];
  return html`<g class="axes">${y.scale.ticks.map((tick) => {
    const at = toY(y.scale.position(tick)).toFixed(1);
    return html`<line x1="${left}" x2="${right}" y1="${at}" y2="${at}"/><text x="${left - 5}" y="${at}" dy="3.2" text-anchor="end">${y.label(tick)}</text>`;
  })}${x.scale.ticks.map((tick) => {
    const at = toX(x.scale.position(tick)).toFixed(1);
    return html`<line class="upright" x1="${at}" x2="${at}" y1="${top}" y2="${bottom}"/><text x="${at}" y="${bottom + 13}" text-anchor="middle">${x.label(tick)}</text>`;
  })}</g>`;
}

export function panel(title: string, note: Html | null, alt: string, content: Html): Html {
  return html`<figure class="panel"><figcaption><b>${title}</b> ${note}</figcaption>
<svg viewBox="0 0 ${PANEL_LAYOUT.width} ${PANEL_LAYOUT.height}" role="img" aria-label="${alt}">${content}</svg></figure>
`;
}

export function panels(all: Html[]): Html {
  const rest = all.slice(MAX_PANELS);
  return html`<div class="panels">${all.slice(0, MAX_PANELS)}</div>${
    rest.length > 0 &&
    html`<details><summary>Show the other ${rest.length} places</summary><div class="panels">${rest}</div></details>`
  }`;
}
