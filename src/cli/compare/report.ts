/** Renders a comparison as one self-contained HTML page, with a line chart of the loss of each mode. */
import {
  type AxisScale,
  dateTime,
  decimalsOf,
  type Html,
  html,
  htmlPage,
  htmlSection,
  linearScale,
  logScale,
  logTick,
  PAGE_POLICY,
  reportStyle,
  signed,
  significant,
  trusted,
} from '../../html/index.js';
import type { TrainingMode, TrainResults } from '../../training/index.js';
import { bytesText, describeDifferences, digits, excludedCellReasons, trainingWarnings } from './measures.js';
import type { Comparison } from './runs.js';
import { baselinesText, runsOfMode } from './summary.js';
import {
  accuracyTable,
  cellTable,
  costTable,
  questionTable,
  runTable,
  type TextTable,
  verdictTable,
} from './tables.js';

interface LossCurve {
  mode: TrainingMode;
  seed: number;
  /** Mean squared error on the validation patches of all cells after each epoch. */
  validation: number[];
}

export function lossCurves(comparison: Comparison): LossCurve[] {
  return comparison.modes.flatMap((mode) =>
    runsOfMode(comparison, mode).map(({ seed, results }) => ({ mode, seed, validation: lossesOf(results) })),
  );
}

/**
 * The mean over all validation values, as in the pooled scores. A cell that stopped early counts with its last epoch. Empty if the results
 * have no losses, as those of stored models, which have them in their cards.
 */
function lossesOf({ models }: TrainResults): number[] {
  const known = models.flatMap(({ losses, validationValues }) =>
    losses && validationValues ? [{ losses, validationValues }] : [],
  );
  if (known.length < models.length) return [];
  const epochs = Math.max(0, ...known.map(({ losses }) => losses.length));
  const all = known.reduce((sum, { validationValues }) => sum + validationValues, 0);
  return Array.from({ length: epochs }, (_, i) =>
    known.reduce((sum, { losses, validationValues }) => {
      const { validation } = losses[Math.min(i, losses.length - 1)]!;
      return sum + (validationValues / all) * validation;
    }, 0),
  );
}

interface Line {
  /** Index of its mode, which selects the colour and the dash pattern. */
  index: number;
  points: [x: number, y: number][];
}

interface Axis {
  scale: AxisScale;
  label(tick: number): string;
  title: string;
}

const CHART_WIDTH = 640;
const CHART_HEIGHT = 250;
const LEFT = 52;
const RIGHT = 10;
const TOP = 8;
const BOTTOM = 34;

/** A line chart with a colour and dash pattern for each mode. */
function lineChart(alt: string, lines: Line[], x: Axis, y: Axis): Html {
  const xOf = (value: number) => LEFT + x.scale.position(value) * (CHART_WIDTH - LEFT - RIGHT);
  const yOf = (value: number) =>
    CHART_HEIGHT - BOTTOM - y.scale.position(value) * (CHART_HEIGHT - TOP - BOTTOM);
  const [left, right, top, bottom] = [LEFT, CHART_WIDTH - RIGHT, TOP, CHART_HEIGHT - BOTTOM];
  const rules = y.scale.ticks.map((tick) => {
    const at = yOf(tick).toFixed(1);
    return html`<line x1="${left}" x2="${right}" y1="${at}" y2="${at}"/><text x="${left - 6}" y="${at}" dy="3.5" text-anchor="end">${y.label(tick)}</text>`;
  });
  const ticks = x.scale.ticks.map((tick) => {
    const at = xOf(tick).toFixed(1);
    return html`<line x1="${at}" x2="${at}" y1="${top}" y2="${bottom}"/><text x="${at}" y="${bottom + 14}" text-anchor="middle">${x.label(tick)}</text>`;
  });
  const paths = lines.map(({ index, points }) => {
    const path = points
      .map(([px, py], i) => `${i === 0 ? 'M' : 'L'}${xOf(px).toFixed(1)} ${yOf(py).toFixed(1)}`)
      .join('');
    // A line with one point is drawn as a dot.
    return html`<path class="mode-${index}" d="${path}${points.length === 1 && 'h0'}"/>`;
  });
  return html`<figure class="lines"><svg viewBox="0 0 ${CHART_WIDTH} ${CHART_HEIGHT}" role="img" aria-label="${alt}"><g class="axes">${rules}${ticks}</g>
<text x="${(left + right) / 2}" y="${CHART_HEIGHT - 4}" text-anchor="middle">${x.title}</text>${paths}</svg>
<figcaption>${y.title}</figcaption></figure>
`;
}

/** Information that a reader needs to judge the figures and to repeat the comparison. */
interface ReportContext {
  command: string;
  /** RFC 3339. */
  generatedAt: string;
  /** Address of the server, or the data folder. */
  target: string;
  /** Ids of the nodes. */
  nodes: string[];
  software: string;
}

/** Blue, orange and violet. Dash patterns differ too, so that no reader depends on colour. */
const MODE_STYLE = trusted(`
:root { --mode-0: #0a63a8; --mode-1: #c0640a; --mode-2: #7a5fb5; }
@media (prefers-color-scheme: dark) { :root { --mode-0: #74b9f2; --mode-1: #f0a050; --mode-2: #b49df0; } }
.lines { margin: 0 0 22px; max-width: 760px; } .lines svg { display: block; width: 100%; overflow: visible; }
.lines figcaption { color: var(--soft); font-size: 13px; } .lines path { stroke-width: 1.8; }
.mode-0 { stroke: var(--mode-0); } .mode-1 { stroke: var(--mode-1); stroke-dasharray: 7 3; } .mode-2 { stroke: var(--mode-2); stroke-dasharray: 2 3; }
.legend svg { width: 30px; height: 8px; margin-right: 6px; } .legend path { stroke-width: 2.2; }
.figures td { white-space: nowrap; } .figures td:last-child { white-space: normal; min-width: 90px; } .figures caption { position: sticky; left: 0; max-width: min(100%, calc(100vw - 40px)); } .figures tbody th { font-family: inherit; min-width: 130px; } .figures thead th { min-width: 90px; }`);

export function renderComparison(comparison: Comparison, context: ReportContext): string {
  const { model, modes, seeds, runs, failed } = comparison;
  const { command, generatedAt, target, nodes, software } = context;
  const asked = modes.length * seeds.length;
  const questions = questionTable(comparison);
  return htmlPage({
    title: `${model}: ${modes.join(', ')}`,
    policy: PAGE_POLICY,
    style: html`${reportStyle}${MODE_STYLE}`,
    body: html`<header>
<p class="eyebrow">tilewright comparison</p>
<h1>${model}: ${modes.join(', ')}</h1>
<p class="meta">${dateTime(generatedAt)} · ${target} · ${nodes.length === 1 ? '1 node' : `${nodes.length} nodes`} · tilewright ${software}</p>
<p class="lead">${runs.length} of ${asked} trainings, ${seeds.length === 1 ? 'seed' : 'seeds'} ${seeds.join(', ')}${failed.length > 0 && `, ${failed.length} failed`}. ${dataText(comparison)}${epochsText(comparison)}Models are not stored.</p>
${legend(comparison)}
</header>
<main>
${htmlSection('Cost', tableHtml(costTable(comparison)), costNote(comparison))}
${htmlSection('Accuracy', tableHtml(accuracyTable(comparison)), html`<p class="note">${baselinesText(comparison)}</p>`)}
${questions.rows.length > 0 && htmlSection('Other ground and other dates', tableHtml(questions))}
${modes.length > 1 && htmlSection('Verdicts', tableHtml(verdictTable(comparison)))}
${htmlSection('Accuracy by place', tableHtml(cellTable(comparison)), ...excludedCellsSection(comparison), ...warningsSection(comparison))}
${htmlSection('Convergence', convergence(comparison))}
${htmlSection('CPU and memory over time', ...overTime(comparison))}
${htmlSection('All runs', tableHtml(runTable(comparison)), html`<p>The command that was run:</p><pre><code>${command}</code></pre>`)}
</main>
<footer>Made by tilewright, ${dateTime(generatedAt)}. This page loads no external resources.</footer>`,
  });
}

function legend({ modes }: Comparison): Html {
  return html`<div class="legend">${modes.map(
    (mode, i) =>
      html`<span><svg viewBox="0 0 30 8" aria-hidden="true"><path class="mode-${i}" d="M0 4H30"/></svg>${mode}</span>`,
  )}</div>`;
}

function tableHtml({ caption, titles, rows }: TextTable): Html {
  return html`<div class="scroll"><table class="figures">
<caption>${caption}</caption>
<thead><tr>${titles.map((title) => html`<th scope="col">${title}</th>`)}</tr></thead>
<tbody>${rows.map(
    ([first, ...rest]) =>
      html`<tr><th scope="row">${first!}</th>${rest.map((cell) => html`<td>${cell}</td>`)}</tr>
`,
  )}</tbody></table></div>`;
}

/** States whether the runs trained on the same data. Empty for fewer than two runs. */
function dataText(comparison: Comparison): Html {
  if (comparison.runs.length < 2) return html``;
  const differences = describeDifferences(comparison);
  if (differences.length === 0) return html`All runs trained on the same places and patches. `;
  const shown = differences.slice(0, MAX_DIFFERENCES);
  const more = differences.length - shown.length;
  return html`<b>The runs did not train on the same data</b>: ${shown.join('; ')}${more > 0 && `; and ${more} more`}. Medians of places and verdicts are over the places that all runs have, with the same patches. Scores of all patches as one set are omitted. `;
}

function epochsText({ runs }: Comparison): string {
  const epochs = runs.flatMap(({ results }) => results.models.map((model) => model.epochs));
  if (epochs.length === 0) return '';
  const [least, most] = [Math.min(...epochs), Math.max(...epochs)];
  return least === most ? `Each model took ${most} epochs. ` : `Models took ${least} to ${most} epochs. `;
}

function excludedCellsSection(comparison: Comparison): Html[] {
  const reasons = excludedCellReasons(comparison);
  return reasons.length > 0 ? [html`<p class="note">Places without a model: ${reasons.join('; ')}.</p>`] : [];
}

function warningsSection(comparison: Comparison): Html[] {
  const warnings = trainingWarnings(comparison);
  return warnings.length > 0
    ? [html`<p class="note">Warnings of the trainings: ${warnings.join('; ')}.</p>`]
    : [];
}

function costNote({ idleBytesPerSecond, runs }: Comparison): Html {
  const bytes =
    idleBytesPerSecond === undefined
      ? 'Bytes are not counted: either the node runs within the command and sends none, or its system does not count them.'
      : `Bytes are those that the network interfaces of the nodes have sent, and the loopback if several nodes share it, minus ${bytesText(idleBytesPerSecond)} a second, which they send while nothing is trained. That rate was measured over ten seconds, so net bytes of a long training are approximate. Other programs on the same machines count too.`;
  const cpu = runs.every(({ usage }) => usage.includesChildren)
    ? 'CPU and memory are those of the servers with all their processes, measured twice a second; memory excludes mapped files.'
    : 'CPU and memory are omitted, because a node does not count the processes that it starts, which only Linux allows.';
  return html`<p class="note">${cpu} ${bytes}</p>`;
}

/** A logarithmic axis needs at least this many ticks to be readable. */
const MIN_TICKS = 3;

/** Differences that the summary lists. */
const MAX_DIFFERENCES = 5;
/** A chart has fewer pixels, so more points would only enlarge the page. */
const MAX_POINTS = 500;

function thinned<T>(points: T[]): T[] {
  const step = Math.ceil(points.length / MAX_POINTS);
  return points.filter((_, i) => i % step === 0);
}

const linearLabel = (scale: AxisScale & { step: number }) => (tick: number) =>
  signed(tick, decimalsOf(scale.step));

function convergence(comparison: Comparison): Html {
  const curves = lossCurves(comparison).filter(({ validation }) => validation.length > 0);
  if (curves.length === 0) return html`<p>No training has ended.</p>`;
  const epochs = Math.max(...curves.map(({ validation }) => validation.length));
  const lines = curves.map(
    ({ mode, validation }): Line => ({
      index: comparison.modes.indexOf(mode),
      points: validation.map((value, i) => [i + 1, value]),
    }),
  );
  const x = linearScale([1, epochs]);
  const ticks = x.ticks.filter((tick) => Number.isInteger(tick) && tick >= 1);
  const errors = curves.flatMap(({ validation }) => validation);
  const logarithmic = logScale(errors);
  const isWide = logarithmic.ticks.length >= MIN_TICKS;
  const title = `Mean squared error on the validation patches of all places after each epoch${isWide ? ', logarithmic' : ''}; a line for each seed.`;
  return lineChart(
    `Validation error of ${curves.length} trainings over ${epochs} epochs`,
    lines,
    { scale: { ...x, ticks }, label: String, title: 'epoch' },
    isWide
      ? { scale: logarithmic, label: logTick, title }
      : { scale: linearScale(errors), label: significant, title },
  );
}

function overTime(comparison: Comparison): Html[] {
  const { modes } = comparison;
  const traces = modes.flatMap((mode, index) =>
    runsOfMode(comparison, mode)
      .slice(0, 1)
      .filter(({ usage }) => usage.includesChildren)
      .map(({ seed, usage }) => ({ index, mode, seed, trace: thinned(usage.trace) })),
  );
  if (traces.every(({ trace }) => trace.length === 0)) return [html`<p>Nothing was measured.</p>`];
  const all = traces.flatMap(({ trace }) => trace);
  const x = linearScale([0, ...all.map(({ seconds }) => seconds)]);
  const ticks = x.ticks.filter((tick) => tick >= 0);
  const across = { scale: { ...x, ticks }, label: linearLabel(x), title: 'seconds' };
  const chart = (
    title: string,
    of: (point: (typeof all)[number]) => number,
    label: (scale: AxisScale & { step: number }) => (tick: number) => string,
  ) => {
    const scale = linearScale([0, ...all.map(of)]);
    return lineChart(
      `${title}, by mode`,
      traces.map(({ index, trace }) => ({
        index,
        points: trace.map((point): [number, number] => [point.seconds, of(point)]),
      })),
      across,
      { scale: { ...scale, ticks: scale.ticks.filter((tick) => tick >= 0) }, label: label(scale), title },
    );
  };
  const seeds = [...new Set(traces.map(({ seed }) => seed))].join(' and ');
  return [
    chart(`Cores in use, mean of the nodes, seed ${seeds}.`, ({ cores }) => cores, linearLabel),
    chart(
      `Memory in GB, mean of the nodes with their processes, seed ${seeds}.`,
      ({ memoryBytes }) => memoryBytes / 1e9,
      () => digits,
    ),
  ];
}
