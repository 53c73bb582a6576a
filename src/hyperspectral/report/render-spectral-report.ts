/** The report of an analysis as one HTML page that fetches nothing. */

import { type Html, html, htmlPage, PAGE_POLICY } from '../../html/index.js';
import { colourOfCode } from '../../imagery/index.js';
import type { TileCounts } from '../../jobs/index.js';
import type { AnalysedBand } from '../spectrum-reading/index.js';
import { REPORT_STYLE } from './spectral-report-style.js';

export interface Section {
  title: string;
  content: Html;
}

interface AnalysisReport {
  title: string;
  collection: string;
  /** Short facts, such as the number of pixels. */
  facts: string[];
  counts: Pick<TileCounts, 'tiles' | 'skipped' | 'failed' | 'failures'>;
  sections: Section[];
  /** Milliseconds since 1970. */
  madeAt: number;
}

/** Every text from outside is escaped. */
export function renderAnalysisReport({
  title,
  collection,
  facts,
  counts,
  sections,
  madeAt,
}: AnalysisReport): string {
  return htmlPage({
    title: `${title}: ${collection}`,
    policy: PAGE_POLICY,
    style: REPORT_STYLE,
    body: html`<p class="meta">tilewright analysis · ${new Date(madeAt).toISOString().slice(0, 16).replace('T', ' ')} UTC</p>
<h1>${title} of <code>${collection}</code></h1>
<p class="meta">${facts.join(' · ')}</p>
${sections.map(({ title, content }) => html`<section><h2>${title}</h2>${content}</section>\n`)}
${skippedSection(counts)}`,
  });
}

function skippedSection({ skipped, failed, failures }: AnalysisReport['counts']): Html | null {
  const rows = [
    ...Object.entries(skipped).map(([reason, tiles]) => [tilesText(tiles), reason]),
    ...failed.slice(0, MAX_LISTED_FAILURES).map(({ tile, message }) => [tile, message]),
  ];
  if (rows.length === 0) return null;
  return html`<section><h2>Tiles left out</h2><p class="meta">${tilesText(failures)} failed.</p><table>${rows.map(
    ([what, why]) => html`<tr><td>${what!}</td><td>${why!}</td></tr>`,
  )}</table></section>`;
}

/** Failed tiles that a report lists; the job's results have more. */
const MAX_LISTED_FAILURES = 50;

export interface Column {
  name: string;
  isNumber?: boolean;
}

/** Columns of text, followed by columns of numbers. */
export const columns = (texts: string[], numbers: string[]): Column[] => [
  ...texts.map((name) => ({ name })),
  ...numbers.map((name) => ({ name, isNumber: true })),
];

/** A table; numbers are aligned to the right. */
export function htmlTable(columns: readonly Column[], rows: readonly (string | Html)[][]): Html {
  const cell = (text: string | Html, i: number) =>
    columns[i]?.isNumber ? html`<td class="number">${text}</td>` : html`<td>${text}</td>`;
  return html`<div class="scroll"><table><thead><tr>${columns.map(({ name, isNumber }) =>
    isNumber ? html`<th class="number">${name}</th>` : html`<th>${name}</th>`,
  )}</tr></thead><tbody>${rows.map((row) => html`<tr>${row.map(cell)}</tr>`)}</tbody></table></div>`;
}

/** A square in the colour that maps use for a code. */
export function colourKey(code: number): Html {
  const colour = `#${colourOfCode(code).toString(16).padStart(6, '0')}`;
  return html`<i class="key" style="background: ${colour}"></i>`;
}

export const percentText = (share: number) => `${(100 * share).toFixed(1)} %`;

export const tilesText = (tiles: number) => (tiles === 1 ? '1 tile' : `${tiles} tiles`);

/** Returns a text such as "218 bands, 418 to 2446 nm". */
export function bandsText(bands: readonly AnalysedBand[]): string {
  const wavelengths = bands.map(({ wavelength }) => wavelength);
  const [low, high] = [Math.min(...wavelengths), Math.max(...wavelengths)].map(Math.round);
  return `${bands.length} bands, ${low} to ${high} nm`;
}

/** Facts about the covariance for the head of a report. */
export function covarianceFacts({ pixels, loading = 0 }: { pixels?: number; loading?: number }): string[] {
  return [
    ...(pixels === undefined ? [] : [`${pixels} pixels`]),
    ...(loading > 0 ? [`${loading} of the mean variance added to the diagonal of the covariance`] : []),
  ];
}
