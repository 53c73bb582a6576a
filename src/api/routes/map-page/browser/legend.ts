/// <reference lib="dom" />
/** The legend of a map of one band. */

import { short } from './plot.js';
import type { TileJson } from './requests.js';

/** Fills `figure`, or hides it if there is no colour scale, as for true colour and codes. */
export function showLegend(figure: HTMLElement, label: string, scale: TileJson['colour_scale']): void {
  figure.hidden = !scale;
  if (!scale) return;
  const [caption, bar, low, high] = ['figcaption', 'div', 'span', 'span'].map((name) =>
    document.createElement(name),
  );
  caption.textContent = label;
  bar.className = 'ramp';
  bar.style.background = `linear-gradient(to right, ${scale.colours.join(', ')})`;
  low.textContent = `≤ ${short(scale.low)}`;
  high.textContent = `≥ ${short(scale.high)}`;
  figure.replaceChildren(caption, bar, low, high);
}
