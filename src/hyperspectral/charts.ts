/** Charts of spectra and eigenvalues. */
import {
  type AxisScale,
  decimalsOf,
  type Html,
  html,
  linearScale,
  logScale,
  logTick,
  signed,
} from '../html/index.js';

const CHART_WIDTH_PX = 720;
const CHART_HEIGHT_PX = 300;
/** Margins around the plot, in pixels. */
const LEFT = 64;
const RIGHT = 24;
const TOP = 22;
const BOTTOM = 34;
/** Number of curve colours in the style sheet; they repeat. */
const COLOURS = 8;
/** A step between wavelengths is a gap if it is wider than this multiple of the median step. */
const GAP_STEP_RATIO = 4;

export interface Curve {
  name: string;
  /** One value for each wavelength. */
  values: ArrayLike<number>;
  /** Half the width of a band around the curve. */
  spread?: ArrayLike<number>;
}

/** Curves over the wavelengths of bands in nm, in any order. */
export function spectrumChart(
  bands: readonly { wavelength: number }[],
  curves: readonly Curve[],
  unit = '',
): Html {
  const wavelengths = bands.map(({ wavelength }) => wavelength);
  const order = [...wavelengths.keys()].sort((a, b) => wavelengths[a] - wavelengths[b]);
  const all = curves.flatMap(({ values, spread }) =>
    order.flatMap((at) => [values[at] - (spread?.[at] ?? 0), values[at] + (spread?.[at] ?? 0)]),
  );
  const [x, y] = [linearScale([...wavelengths]), linearScale(all)];
  const steps = order.slice(1).map((at, i) => wavelengths[at] - wavelengths[order[i]]);
  const usual = steps.toSorted((a, b) => a - b)[Math.floor(steps.length / 2)] ?? 0;
  const runs: number[][] = [];
  for (const [i, at] of order.entries())
    if (i === 0 || steps[i - 1] > GAP_STEP_RATIO * usual) runs.push([at]);
    else runs.at(-1)!.push(at);
  const point = (at: number, value: number) => `${xOf(x, wavelengths[at])} ${yOf(y, value)}`;
  const line = (run: number[], valueAt: (at: number) => number) =>
    run.map((at, i) => `${i === 0 ? 'M' : 'L'}${point(at, valueAt(at))}`).join('');
  const shapes = curves.map(({ values, spread }, c) => {
    const path = runs.map((run) => line(run, (at) => values[at])).join('');
    const area =
      spread &&
      runs
        .map((run) => {
          const above = line(run, (at) => values[at] + spread[at]);
          const below = line(run.toReversed(), (at) => values[at] - spread[at]).replace('M', 'L');
          return `${above}${below}Z`;
        })
        .join('');
    return html`<g class="curve c${c % COLOURS}">${area !== undefined && html`<path class="spread" d="${area}"/>`}<path d="${path}"/></g>`;
  });
  const legend =
    curves.length > 1 &&
    html`<p class="legend">${curves.map(({ name }, c) => html`<span class="c${c % COLOURS}">${name}</span>`)}</p>`;
  return html`${legend}${frame(x, y, 'nm', unit, decimalsOf(y.step), shapes, `${curves.length} spectra`)}`;
}

/** Eigenvalues on a logarithmic axis. */
export function eigenvalueChart(eigenvalues: readonly number[], unit: string): Html {
  const positive = eigenvalues.filter((value) => value > 0);
  const [x, y] = [linearScale([1, positive.length]), logScale(positive)];
  const path = positive.map((value, i) => `${i === 0 ? 'M' : 'L'}${xOf(x, i + 1)} ${yOf(y, value)}`).join('');
  const curve = [html`<g class="curve c0"><path d="${path}"/></g>`];
  return frame(x, y, 'component', unit, undefined, curve, `${positive.length} eigenvalues`);
}

const xOf = (scale: AxisScale, value: number) =>
  (LEFT + scale.position(value) * (CHART_WIDTH_PX - LEFT - RIGHT)).toFixed(1);
const yOf = (scale: AxisScale, value: number) =>
  (CHART_HEIGHT_PX - BOTTOM - scale.position(value) * (CHART_HEIGHT_PX - TOP - BOTTOM)).toFixed(1);

/** `decimals`: digits after the point of the labels of a linear y axis; undefined for a logarithmic axis. */
function frame(
  x: AxisScale,
  y: AxisScale,
  xUnit: string,
  yUnit: string,
  decimals: number | undefined,
  content: Html[],
  alt: string,
): Html {
  const label = (tick: number) => (decimals === undefined ? logTick(tick) : signed(tick, decimals));
  return html`<svg class="chart" viewBox="0 0 ${CHART_WIDTH_PX} ${CHART_HEIGHT_PX}" role="img" aria-label="${alt}">
<g class="axes">${y.ticks.map(
    (tick) =>
      html`<line x1="${LEFT}" x2="${CHART_WIDTH_PX - RIGHT}" y1="${yOf(y, tick)}" y2="${yOf(y, tick)}"/><text x="${LEFT - 6}" y="${yOf(y, tick)}" dy="4" text-anchor="end">${label(tick)}</text>`,
  )}${x.ticks.map(
    (tick) =>
      html`<text x="${xOf(x, tick)}" y="${CHART_HEIGHT_PX - BOTTOM + 16}" text-anchor="middle">${Math.round(tick)}</text>`,
  )}<text x="${CHART_WIDTH_PX - RIGHT}" y="${CHART_HEIGHT_PX - 4}" text-anchor="end">${xUnit}</text><text x="${LEFT}" y="12">${yUnit}</text></g>
${content}</svg>`;
}
