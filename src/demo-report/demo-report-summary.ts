/** The summary at the top of the report. */
import { formatDuration, formatR2, type Html, html, median, significant } from '../html/index.js';
import { plural } from '../utils/plural.js';
import type { ReportCell } from './demo-report-cells.js';
import type { DemoReport } from './demo-report-data.js';
import { verdictText } from './demo-report-verdict.js';

export function summary(report: DemoReport, cells: ReportCell[]): Html {
  const { scenes, tiles, query, training, collection } = report;
  const { models, skipped, pooled } = training;
  const cut = `${plural(scenes.length, 'scene')} became ${plural(tiles.length, 'tile')} of ${plural(cells.length, 'place')} on the ${collection.grid} grid (precision ${collection.precision}).`;
  const found = `The search picked ${query.matched} of ${query.total}.`;
  const learnt =
    models.length === 0
      ? `No model was trained${skipped.length > 0 ? '; the reasons are below' : ''}.`
      : `For ${plural(models.length, 'place')} a small neural network of its own learnt to tell the mean NDVI (how green a patch is) from red, green and blue alone, in ${formatDuration(training.seconds)}.`;
  const middle = formatR2(median(models.map(({ metrics }) => metrics.validation.r2)));
  return html`<p class="lead">${cut} ${found} ${learnt}</p>
${models.length > 0 && html`<p class="verdict">${verdictText(training)}</p>`}
<dl class="numbers">${[
    number(scenes.length, null, scenes.length === 1 ? 'scene' : 'scenes'),
    number(tiles.length, null, `${tiles.length === 1 ? 'tile' : 'tiles'}, ${plural(cells.length, 'place')}`),
    number(query.matched, `of ${query.total}`, 'tiles picked by the search'),
    number(
      models.length,
      null,
      `${models.length === 1 ? 'model' : 'models'} trained, ${skipped.length} skipped`,
    ),
  ]}${models.length > 0 && number(middle, null, 'median R² of a place’s validation patches')}${
    pooled &&
    number(
      formatR2(pooled.model.r2),
      null,
      `R² of all patches together, MSE ${significant(pooled.model.mse)}`,
    )
  }</dl>`;
}

function number(value: string | number, unit: string | null, label: string): Html {
  return html`<div><dt>${label}</dt><dd>${value}${unit && html` <small>${unit}</small>`}</dd></div>`;
}
