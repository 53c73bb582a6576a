/** Renders the report of a demo as one HTML page. */
import {
  dateText,
  dateTime,
  formatDuration,
  type Html,
  html,
  htmlPage,
  htmlSection,
  PAGE_POLICY,
  reportStyle,
} from '../html/index.js';
import { plural } from '../utils/plural.js';
import { baselineComparison } from './demo-report-baselines.js';
import { groupByCell, type ReportCell } from './demo-report-cells.js';
import type { DemoReport, ReportScene, ReportTraining } from './demo-report-data.js';
import { dateTable } from './demo-report-dates.js';
import { lossCharts } from './demo-report-losses.js';
import { tileMap } from './demo-report-map.js';
import { scatterCharts } from './demo-report-scatter.js';
import { script } from './demo-report-script.js';
import { summary } from './demo-report-summary.js';
import { cellsBelowBaseline } from './demo-report-verdict.js';

/** One self-contained HTML page: no external resource, works offline, light and dark. Every text in `report` is escaped. */
export function renderReport(report: DemoReport): string {
  const { title, generatedAt, machine, collection, scenes, tiles, training } = report;
  const cells = groupByCell(tiles);
  return htmlPage({
    title,
    policy: `${PAGE_POLICY}; script-src 'unsafe-inline'`,
    style: reportStyle,
    body: html`<header>
<p class="eyebrow">tilewright report</p>
<h1>${title}</h1>
<p class="meta">${dateTime(generatedAt)} · collection <code>${collection.id}</code> · ${machine}</p>
${summary(report, cells)}
</header>
<main>
${htmlSection('The scenes', sceneTable(scenes))}
${htmlSection('The tiles', tileSection(cells))}
${htmlSection('The search', querySection(report))}
${training.models.length > 0 && trainingSections(training)}
${training.skipped.length > 0 && htmlSection('Skipped places', skippedList(training))}
${report.next.length > 0 && htmlSection('How to go on', nextCommands(report.next))}
</main>
<footer>Made by tilewright, ${dateTime(generatedAt)}. This page holds all it shows and asks for nothing from elsewhere.</footer>
<div id="tip" hidden></div>
<script>${script}</script>`,
  });
}

function sceneTable(scenes: ReportScene[]): Html {
  return html`<table class="scenes">
<caption>What was taken in, and how many tiles each scene was cut into.</caption>
<thead><tr><th scope="col">Scene</th><th scope="col">Collection</th><th scope="col">Date</th><th scope="col">Platform</th><th scope="col">Bands</th><th scope="col">Pixels</th><th scope="col" class="number">Tiles</th></tr></thead>
<tbody>${scenes.map(sceneRow)}</tbody></table>`;
}

function sceneRow({ id, collection, time, platform, bands, size, tiles, warnings }: ReportScene): Html {
  const notes = warnings.map((warning) => html`<li>Warning: ${warning}</li>`);
  return html`<tr><th scope="row">${id}${notes.length > 0 && html`<ul class="plain warnings">${notes}</ul>`}</th><td>${collection}</td><td>${dateText(time)}</td><td>${platform ?? 'platform unknown'}</td><td>${bands.join(', ')}</td><td>${size}</td><td class="number">${tiles}<span class="unit"> tiles</span></td></tr>
`;
}

function tileSection(cells: ReportCell[]): Html {
  return html`<p>Each place is one cell of the grid, drawn in true proportion. Shown is its newest picked tile, or the least cloudy one where none was picked (paler).</p>
<div class="tiles">${tileMap(cells)}
<div class="dates-block"><h3>Every tile, by place and date</h3>
${dateTable(cells)}</div></div>`;
}

function querySection({ query: { command, description, matched, total } }: DemoReport): Html {
  const share = total > 0 ? ((matched / total) * 100).toFixed(1) : '0';
  return html`<p class="asked">${description}</p>
${commandBlock(command)}
<div class="match" role="img" aria-label="${matched} of ${plural(total, 'tile')} picked"><i style="width:${share}%"></i></div>
<p class="note">${matched} of ${plural(total, 'tile')} ${matched === 1 ? 'fits' : 'fit'}.</p>`;
}

function trainingSections(training: ReportTraining): Html {
  const { engine, seconds, epochs, models } = training;
  const sum = (part: 'train' | 'validation') =>
    models.reduce((total, { patches }) => total + patches[part], 0);
  return html`${htmlSection(
    'How the models learnt',
    html`<p>${plural(models.length, 'model')}, ${plural(epochs, 'epoch')} each, ${formatDuration(seconds)} in all on engine <code>${engine}</code>. ${sum('train')} patches to learn from and ${sum('validation')} kept apart to check: they lie on another side of the tile, with a gap between, and on later dates where there are several.</p>
<div class="legend"><span><i class="key line of-train"></i> training loss</span><span><i class="key line"></i> validation loss</span><span><i class="key line of-ridge"></i> ridge regression</span><span>Up: mean squared error, logarithmic. Across: epochs.</span></div>
${lossCharts(models)}`,
  )}${htmlSection(
    'What they predict',
    html`<p>Each dot is a validation patch: its true mean NDVI across, the predicted one up. On the dashed line the two are the same.</p>
${scatterCharts(training)}`,
  )}${htmlSection(
    'Are they worth it?',
    html`<p>Ridge is a linear fit to the mean red, green and blue of a patch; mean is the average NDVI of the training patches, always. A network is worth its training only where it beats both. ${cellsBelowBaseline(models)}</p>
${baselineComparison(training)}`,
  )}`;
}

function skippedList({ skipped }: ReportTraining): Html {
  return html`<p>${plural(skipped.length, 'place')} got no model.</p>
<ul class="plain skipped">${skipped.map(({ geocode, reason }) => html`<li><span class="geocode">${geocode}</span>${reason}</li>`)}</ul>`;
}

function nextCommands(commands: string[]): Html {
  return html`<p>Commands to try next:</p>
${commands.map(commandBlock)}`;
}

/** A command with line breaks only between words. */
function commandBlock(command: string): Html {
  const [first, ...rest] = command.split(' ').map((word) => html`<span>${word}</span>`);
  return html`<pre><code>${first!}${rest.map((word) => html` ${word}`)}</code></pre>`;
}
