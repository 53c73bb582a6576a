/** Predicted against true NDVI, for all cells together and for each cell, with shared axes. */
import { decimalsOf, formatR2, type Html, html, linearScale, signed, significant } from '../html/index.js';
import { axes, type ChartAxis, panel, panels, svgDots, toX, toY } from './demo-report-chart.js';
import type { ReportMetrics, ReportModel, ReportTraining } from './demo-report-data.js';

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
