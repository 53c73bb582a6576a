/** Small charts of the trained models: losses, predictions, and errors against those of ridge regression and of the training mean. */
import {
  type AxisScale,
  decimalsOf,
  formatColumn,
  formatR2,
  type Html,
  html,
  linearScale,
  logScale,
  logTick,
  signed,
  significant,
} from '../html/index.js';
import type { ReportMetrics, ReportModel, ReportTraining } from './data.js';

/** Units of a panel's view box; panels are drawn at about one pixel a unit, their plots are square. */
const PANEL_LAYOUT = { width: 180, height: 166, left: 34, right: 6, top: 6, bottom: 20 };

/** This many panels are visible; the others are collapsed. */
const MAX_PANELS = 24;

interface ChartAxis {
  scale: AxisScale;
  label(tick: number): string;
}

const toX = (share: number) =>
  PANEL_LAYOUT.left + share * (PANEL_LAYOUT.width - PANEL_LAYOUT.left - PANEL_LAYOUT.right);
const toY = (share: number) =>
  PANEL_LAYOUT.height -
  PANEL_LAYOUT.bottom -
  share * (PANEL_LAYOUT.height - PANEL_LAYOUT.top - PANEL_LAYOUT.bottom);

function svgPath(points: [x: number, y: number][]): string {
  return points.map(([x, y], i) => `${i === 0 ? 'M' : 'L'}${x.toFixed(1)} ${y.toFixed(1)}`).join('');
}

/** A dot at each point, for drawing with round line caps. */
function svgDots(points: [x: number, y: number][]): string {
  return points.map(([x, y]) => `M${x.toFixed(1)} ${y.toFixed(1)}h0`).join('');
}

/** Grid lines and tick labels. */
function axes(x: ChartAxis, y: ChartAxis): Html {
  const [left, right, top, bottom] = [toX(0), toX(1), toY(1), toY(0)];
  return html`<g class="axes">${y.scale.ticks.map((tick) => {
    const at = toY(y.scale.position(tick)).toFixed(1);
    return html`<line x1="${left}" x2="${right}" y1="${at}" y2="${at}"/><text x="${left - 5}" y="${at}" dy="3.2" text-anchor="end">${y.label(tick)}</text>`;
  })}${x.scale.ticks.map((tick) => {
    const at = toX(x.scale.position(tick)).toFixed(1);
    return html`<line class="upright" x1="${at}" x2="${at}" y1="${top}" y2="${bottom}"/><text x="${at}" y="${bottom + 13}" text-anchor="middle">${x.label(tick)}</text>`;
  })}</g>`;
}

function panel(title: string, note: Html | null, alt: string, content: Html): Html {
  return html`<figure class="panel"><figcaption><b>${title}</b> ${note}</figcaption>
<svg viewBox="0 0 ${PANEL_LAYOUT.width} ${PANEL_LAYOUT.height}" role="img" aria-label="${alt}">${content}</svg></figure>
`;
}

function panels(all: Html[]): Html {
  const rest = all.slice(MAX_PANELS);
  return html`<div class="panels">${all.slice(0, MAX_PANELS)}</div>${
    rest.length > 0 &&
    html`<details><summary>Show the other ${rest.length} places</summary><div class="panels">${rest}</div></details>`
  }`;
}

/** Loss curves of the models as small multiples with shared axes. */
export function lossCharts(models: ReportModel[]): Html {
  const epochs = Math.max(1, ...models.map(({ losses }) => losses.at(-1)?.epoch ?? 1));
  const y: ChartAxis = {
    scale: logScale(
      models.flatMap(({ losses, baseline }) => [
        ...losses.flatMap(({ train, validation }) => [train, validation]),
        baseline.linear.mse,
      ]),
    ),
    label: logTick,
  };
  const x: ChartAxis = { scale: epochScale(epochs), label: String };
  return panels(models.map((model) => lossPanel(model, x, y)));
}

function lossPanel({ geocode, losses, patches, baseline }: ReportModel, x: ChartAxis, y: ChartAxis): Html {
  const line = (of: (loss: ReportModel['losses'][number]) => number) =>
    svgPath(
      losses
        .filter((loss) => of(loss) > 0)
        .map((loss) => [toX(x.scale.position(loss.epoch)), toY(y.scale.position(of(loss)))]),
    );
  const ridge = toY(y.scale.position(baseline.linear.mse)).toFixed(1);
  const [first, last] = [losses[0], losses.at(-1)];
  const alt =
    first && last
      ? `Loss of place ${geocode} over ${last.epoch} epochs: validation from ${significant(first.validation)} to ${significant(last.validation)}, train from ${significant(first.train)} to ${significant(last.train)}`
      : `Place ${geocode} has no epochs`;
  return panel(
    geocode,
    html`<span data-tip="${patches.train} patches to learn from, ${patches.validation} to check">${patches.train} + ${patches.validation} patches</span>`,
    alt,
    html`${axes(x, y)}<line class="ridge" x1="${toX(0)}" x2="${toX(1)}" y1="${ridge}" y2="${ridge}"/><path class="train" d="${line((loss) => loss.train)}"/><path class="model" d="${line((loss) => loss.validation)}"/>${
      losses.length > 1 && hoverTexts(losses, x.scale)
    }`,
  );
}

/** Tooltips for the epochs, evenly spread over the panel. */
function hoverTexts(losses: ReportModel['losses'], scale: AxisScale): Html {
  const [from, to] = [toX(scale.position(losses[0]!.epoch)), toX(scale.position(losses.at(-1)!.epoch))];
  const texts = losses.map(
    ({ epoch, train, validation }) =>
      `epoch ${epoch}: train ${significant(train)}, validation ${significant(validation)}`,
  );
  return html`<line class="cursor" y1="${toY(1)}" y2="${toY(0)}"/><rect class="hit" x="${from.toFixed(1)}" y="${PANEL_LAYOUT.top}" width="${(to - from).toFixed(1)}" height="${toY(0) - PANEL_LAYOUT.top}" data-tips="${texts.join('|')}"/>`;
}

function epochScale(epochs: number): AxisScale {
  const middle = Math.round((1 + epochs) / 2);
  return {
    position: (epoch) => (epochs === 1 ? 0.5 : (epoch - 1) / (epochs - 1)),
    ticks: [...new Set([1, middle, epochs])],
  };
}

/** Predicted against true NDVI, for all cells together and for each cell, with shared axes. */
export function scatterCharts({ models, pooled }: ReportTraining): Html {
  const values = models.flatMap(({ predictions }) => [...predictions.truth, ...predictions.predicted]);
  // NDVI is between -1 and 1; predictions outside are drawn at the edge.
  const scale = linearScale(values.map((value) => Math.min(1, Math.max(-1, value))));
  const decimals = decimalsOf(scale.step);
  const axis: ChartAxis = { scale, label: (tick) => signed(tick + 0, decimals) };
  const dots = ({ geocode, predictions: { truth, predicted } }: ReportModel) =>
    html`<path class="dots" data-tip="${geocode}" d="${svgDots(
      truth.flatMap((value, i): [number, number][] => {
        const point: [number, number] = [toX(scale.position(value)), toY(scale.position(predicted[i]!))];
        return point.every(Number.isFinite) ? [point] : [];
      }),
    )}"/>`;
  const frame = html`${axes(axis, axis)}<path class="identity" d="M${toX(0)} ${toY(0)}L${toX(1)} ${toY(1)}"/>`;
  const names = html`<text x="${toX(0) + 4}" y="${toY(1) + 4}">predicted NDVI</text><text x="${toX(1) - 2}" y="${toY(0) - 4}" text-anchor="end">true NDVI</text>`;
  const all =
    pooled &&
    html`<div class="pooled">${scatterPanel(
      'All places',
      'all places together',
      pooled.model,
      html`${frame}${names}${models.map(dots)}`,
    )}</div>`;
  const each = models.map((model) =>
    scatterPanel(
      model.geocode,
      `place ${model.geocode}`,
      model.metrics.validation,
      html`${frame}${dots(model)}`,
    ),
  );
  return html`<div class="scatter">${all}${panels(each)}</div>`;
}

function scatterPanel(title: string, name: string, { mse, r2: fit }: ReportMetrics, content: Html): Html {
  const figures = html`<span>R² ${formatR2(fit)} · MSE ${significant(mse)}</span>`;
  const alt = `Predicted against true NDVI of ${name}: R2 ${formatR2(fit)}, mean squared error ${significant(mse)}`;
  return panel(title, figures, alt, content);
}

const MAX_ROWS = 30;

/** The scale and the number format of errors. */
interface Axis {
  scale: AxisScale;
  text(mse: number): string;
}

type Scores = NonNullable<ReportTraining['pooled']>;

/** Compares the model with ridge regression and the training mean, cell by cell. */
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
