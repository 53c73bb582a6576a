/** Compares the model with ridge regression and the training mean, cell by cell. */
import { type AxisScale, formatColumn, formatR2, type Html, html, logScale, logTick } from '../html/index.js';
import type { ReportMetrics, ReportModel, ReportTraining } from './demo-report-data.js';

const MAX_ROWS = 30;

/** The scale and the number format of errors. */
interface Axis {
  scale: AxisScale;
  text(mse: number): string;
}

type Scores = NonNullable<ReportTraining['pooled']>;

export function baselineComparison({ models, pooled }: ReportTraining): Html {
  // The cells with the largest gain of the model come first.
  const sorted = [...models].sort((a, b) => gain(a) - gain(b));
  const all = [...models.map(scoresOf), ...(pooled ? [pooled] : [])];
  const values = all.flatMap(({ model, linear, mean }) => [model.mse, linear.mse, mean.mse]);
  const axis: Axis = { scale: logScale(values), text: formatColumn(values) };
  const rows = sorted.map((model) => row(model.geocode, scoresOf(model), axis));
  const shown = table(rows.slice(0, MAX_ROWS), pooled && row('All', pooled, axis), axis);
  const rest = rows.slice(MAX_ROWS);
  return html`${shown}${rest.length > 0 && html`<details><summary>Show the other ${rest.length} places</summary>${table(rest, null, axis)}</details>`}`;
}

function table(rows: Html[], foot: Html | null, { scale }: Axis): Html {
  return html`<table class="errors">
<caption>Mean squared error on the validation patches, lower is better; the lowest of a row is bold. Logarithmic axis.</caption>
<thead><tr><th scope="col">Place</th><th scope="col" class="plot"><span class="sr">Chart</span><span class="ticks">${scale.ticks.map(
    (tick) => html`<span class="tick" style="left:${share(scale, tick)}">${logTick(tick)}</span>`,
  )}</span></th><th scope="col"><i class="key model"></i>Model</th><th scope="col"><i class="key ridge"></i>Ridge</th><th scope="col"><i class="key mean"></i>Mean</th><th scope="col" class="wide">Model’s R²</th><th scope="col" class="wide">Best</th></tr></thead>
<tbody>${rows}</tbody>${foot && html`<tfoot>${foot}</tfoot>`}</table>`;
}

function row(name: string, scores: Scores, { scale, text }: Axis): Html {
  const { model, linear, mean } = scores;
  const least = Math.min(...[model.mse, linear.mse, mean.mse].filter(Number.isFinite));
  // If two are equal, the simpler one is better.
  const best = mean.mse === least ? 'mean' : linear.mse === least ? 'ridge' : 'model';
  const value = ({ mse }: ReportMetrics) =>
    html`<td>${mse === least ? html`<b>${text(mse)}</b>` : text(mse)}</td>`;
  return html`<tr${best !== 'model' && html` class="lost"`}><th scope="row">${name}</th><td class="plot">${marks(scores, scale)}</td>${value(model)}${value(linear)}${value(mean)}<td class="wide">${formatR2(model.r2)}</td><td class="wide best">${best}</td></tr>
`;
}

/** The marks differ in shape as well as in colour. */
function marks({ model, linear, mean }: Scores, scale: AxisScale): Html {
  const at = ({ mse }: ReportMetrics) => share(scale, mse);
  return html`<svg class="marks" width="100%" height="20" aria-hidden="true">${scale.ticks.map(
    (tick) => html`<line class="rule" x1="${share(scale, tick)}" x2="${share(scale, tick)}" y1="0" y2="20"/>`,
  )}<line class="span" x1="${at(model)}" x2="${at(linear)}" y1="10" y2="10"/><svg x="${at(mean)}"><line class="mean" y1="4" y2="16"/></svg><svg x="${at(linear)}"><path class="ridge" d="M0 4.5 5.5 10 0 15.5-5.5 10z"/></svg><circle class="model" cx="${at(model)}" cy="10" r="4.5"/></svg>`;
}

const share = (scale: AxisScale, value: number) => `${(scale.position(value) * 100).toFixed(1)}%`;

/** The error divided by the error of ridge regression; a model with an error of NaN comes last. */
function gain({ metrics, baseline }: ReportModel): number {
  const share = metrics.validation.mse / baseline.linear.mse;
  return Number.isNaN(share) ? Number.MAX_VALUE : share;
}

const scoresOf = ({ metrics, baseline }: ReportModel): Scores => ({ model: metrics.validation, ...baseline });
