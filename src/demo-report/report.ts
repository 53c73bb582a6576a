/** Renders the report of a demo as one HTML page: its sections, the words of its summary, and the script for tooltips. */
import {
  dateText,
  dateTime,
  formatDuration,
  formatR2,
  type Html,
  html,
  htmlPage,
  htmlSection,
  median,
  PAGE_POLICY,
  reportStyle,
  significant,
  trusted,
} from '../html/index.js';
import { plural } from '../utils/text.js';
import { baselineComparison, lossCharts, scatterCharts } from './charts.js';
import {
  type DemoReport,
  groupByCell,
  type ReportCell,
  type ReportModel,
  type ReportScene,
  type ReportTraining,
} from './data.js';
import { dateTable, tileMap } from './map.js';

/**
 * The script for tooltips, without which the page works. `data-tip` is one text. `data-tips` has several texts, separated by `|` and
 * spread evenly over the element's width; it moves the cursor line before it.
 */
const script = trusted(`(() => {
  const tip = document.getElementById('tip');
  let cursor = null;
  const hide = () => {
    tip.hidden = true;
    if (cursor) cursor.classList.remove('on');
    cursor = null;
  };
  const show = (event) => {
    const target = event.target.closest ? event.target.closest('[data-tip],[data-tips]') : null;
    if (cursor && (!target || target.previousElementSibling !== cursor)) hide();
    if (!target) return hide();
    let text = target.dataset.tip;
    if (target.dataset.tips) {
      const texts = target.dataset.tips.split('|');
      const box = target.getBoundingClientRect();
      const share = Math.min(1, Math.max(0, (event.clientX - box.left) / box.width));
      const index = Math.round(share * (texts.length - 1));
      const x = target.x.baseVal.value + (index / (texts.length - 1)) * target.width.baseVal.value;
      cursor = target.previousElementSibling;
      cursor.setAttribute('x1', x);
      cursor.setAttribute('x2', x);
      cursor.classList.add('on');
      text = texts[index];
    }
    tip.textContent = text;
    tip.hidden = false;
    const room = document.documentElement.clientWidth - tip.offsetWidth - 8;
    tip.style.left = Math.max(8, Math.min(room, event.clientX + 14)) + 'px';
    const above = event.clientY - tip.offsetHeight - 12;
    tip.style.top = (above > 8 ? above : event.clientY + 20) + 'px';
  };
  document.addEventListener('pointermove', show);
  document.addEventListener('pointerdown', show);
  document.addEventListener('scroll', hide, { passive: true, capture: true });
  document.documentElement.addEventListener('pointerleave', hide);
})();`);

/** States in one to three sentences whether the models are better than the simple baselines. */
function verdictText({ models, pooled }: ReportTraining): string {
  if (models.length === 0) return 'No model was trained, so there is nothing to compare.';
  const beatsRidge = models.filter(
    ({ metrics, baseline }) => metrics.validation.mse < baseline.linear.mse,
  ).length;
  // The condition is negated, so that a model with an error of NaN counts as worse.
  const belowMean = models.filter(
    ({ metrics, baseline }) => !(metrics.validation.mse < baseline.mean.mse),
  ).length;
  return [byPlace(beatsRidge, models.length), againstMean(belowMean), pooled && together(pooled)]
    .filter(Boolean)
    .join(' ');
}

/** Maximum number of cells that a sentence names. */
const MAX_NAMES = 12;

/** The cells in which the model is not better than both baselines. */
function cellsBelowBaseline(models: ReportModel[]): string {
  const lost = models.filter(
    ({ metrics, baseline }) => !(metrics.validation.mse < Math.min(baseline.linear.mse, baseline.mean.mse)),
  );
  if (lost.length === 0) return 'Here it does so everywhere.';
  if (lost.length === models.length) return 'Here it does so nowhere.';
  const names = lost.slice(0, MAX_NAMES).map(({ geocode }) => geocode);
  const more = lost.length > MAX_NAMES ? ` and ${lost.length - MAX_NAMES} more` : '';
  return `Here it does not in ${names.join(', ')}${more}.`;
}

function byPlace(wins: number, places: number): string {
  const all = plural(places, 'place');
  if (wins === places) {
    return places === 1
      ? 'The model has a lower error than ridge regression in its one place.'
      : `The model has a lower error than ridge regression in all ${all}.`;
  }
  const simple = 'a linear fit to three band means is simpler and does at least as well there';
  if (wins === 0) {
    return places === 1
      ? `The model does not beat ridge regression: ${simple}.`
      : `The model beats ridge regression in none of ${all}: ${simple}.`;
  }
  return `The model has a lower error than ridge regression in ${wins} of ${all}; in ${places - wins === 1 ? 'the other one' : `the other ${places - wins}`} it does not: ${simple}.`;
}

function againstMean(losses: number): string {
  if (losses === 0) return '';
  return `In ${plural(losses, 'place')} it is no better than always answering the training mean: do not use it there.`;
}

function together({ model, linear }: NonNullable<ReportTraining['pooled']>): string {
  const change = Math.round(Math.abs(1 - model.mse / linear.mse) * 100);
  const figures = `(${significant(model.mse)} against ${significant(linear.mse)})`;
  if (!Number.isFinite(change)) return '';
  if (change === 0) return `Over all patches together the two errors are about equal ${figures}.`;
  return `Over all patches together its error is ${change} % ${model.mse < linear.mse ? 'lower' : 'higher'} than that of ridge ${figures}.`;
}

function summary(report: DemoReport, cells: ReportCell[]): Html {
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
  const { engine, seconds, served, models } = training;
  const trained = models.filter(({ losses }) => losses.length > 0);
  const sum = (part: 'train' | 'validation') =>
    models.reduce((total, { patches }) => total + patches[part], 0);
  return html`${htmlSection(
    'How the models learnt',
    html`<p>${plural(models.length, 'model')}, ${formatDuration(seconds)} in all on engine <code>${engine}</code>. ${sum('train')} patches to learn from and ${sum('validation')} kept apart to check: they lie on another side of the tile, with a gap between, and on later dates where there are several.</p>
${served.map((line) => html`<p class="note">${line}</p>`)}
${
  trained.length > 0 &&
  html`<div class="legend"><span><i class="key line of-train"></i> training loss</span><span><i class="key line"></i> validation loss</span><span><i class="key line of-ridge"></i> ridge regression</span><span>Up: mean squared error, logarithmic. Across: epochs.</span></div>
${lossCharts(trained)}`
}`,
  )}${htmlSection(
    'What they predict',
    html`<p>Each dot is a validation patch: its true mean NDVI across, the predicted one up. On the dashed line the two are the same.</p>
${scatterCharts(training)}`,
  )}${htmlSection(
    'Are they worth it?',
    html`<p>Ridge is a linear fit of one place to the red, green and blue of a patch and, with several dates, to what the others measured there; mean is the average NDVI of the training patches, always. A model is worth its training only where it beats both. ${cellsBelowBaseline(models)}</p>
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
