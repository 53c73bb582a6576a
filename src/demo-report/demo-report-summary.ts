/** Renders the summary at the top of the report of `tilewright demo`. */
import { formatDuration, formatR2, type Html, html, median, significant } from '../html/index.js';
import { plural } from '../utils/plural.js';
import type { ReportCell } from './demo-report-cells.js';
import type { DemoReport } from './demo-report-data.js';
import { verdictText } from './demo-report-verdict.js';

export function summary(report: DemoReport, cells: ReportCell[]): Html {
  const { scenes, tiles, query, training, collection } = report;
  const { models, skipped, pooled } = training;
  const cut = `${plural(scenes.length, 'scene')} became ${plural(tiles.length, 'tile')} of ${plural(cells.length, 'place')} on the ${collection.grid} grid (precision ${collection.precision}).`;
  const found = `The search selected ${query.matched} of the ${plural(query.total, 'tile')}.`;
  const learnt =
    models.length === 0
      ? `No model was trained${skipped.length > 0 ? '; the reasons are below' : ''}.`
      : `In ${formatDuration(training.seconds)}, the training made ${plural(models.length, 'small neural network')}, one for each place. A network predicts the mean NDVI of a patch (how green the patch is) from its red, green and blue values alone.`;
  const middle = formatR2(median(models.map(({ metrics }) => metrics.validation.r2)));
  return html`<p class="lead">${cut} ${found} ${learnt}</p>
${models.length > 0 && html`<p class="verdict">${verdictText(training)}</p>`}
<dl class="numbers">${[
    number(scenes.length, null, scenes.length === 1 ? 'scene' : 'scenes'),
    number(tiles.length, null, `${tiles.length === 1 ? 'tile' : 'tiles'}, ${plural(cells.length, 'place')}`),
    number(query.matched, `of ${query.total}`, 'tiles selected by the search'),
    number(
      models.length,
      null,
      `${models.length === 1 ? 'model' : 'models'} trained, ${skipped.length} skipped`,
    ),
  ]}${models.length > 0 && number(middle, null, 'median R² of the models, each on the validation patches of its place')}${
    pooled &&
    number(
      formatR2(pooled.model.r2),
      null,
      `R² of all models together, on all validation patches; MSE ${significant(pooled.model.mse)}`,
    )
  }</dl>`;
}

function number(value: string | number, unit: string | null, label: string): Html {
  return html`<div><dt>${label}</dt><dd>${value}${unit && html` <small>${unit}</small>`}</dd></div>`;
}
