/// <reference lib="dom" />
/** What the colours of a map of one band mean. */
import type { TileJson } from './api.js';

/** Fills `figure`, or hides it where there is no scale: true colour, codes. */
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

/** Three digits that count. */
const short = (value: number) => String(Number(value.toPrecision(3)));
