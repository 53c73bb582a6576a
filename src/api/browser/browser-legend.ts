/// <reference lib="dom" />
/** The legend of a map of one band. */
import { html, short } from './browser-plot.js';
import type { TileJson } from './browser-requests.js';

/** Fills `figure`, or hides it if there is no colour scale, as for true colour and codes. */
export function showLegend(figure: HTMLElement, label: string, scale: TileJson['colour_scale']): void {
  figure.hidden = !scale;
  if (!scale) return;
  const bar = html('div', { className: 'ramp' });
  bar.style.background = `linear-gradient(to right, ${scale.colours.join(', ')})`;
  const [low, high] = [`≤ ${short(scale.low)}`, `≥ ${short(scale.high)}`];
  const texts = [low, high].map((textContent) => html('span', { textContent }));
  figure.replaceChildren(html('figcaption', { textContent: label }), bar, ...texts);
}
