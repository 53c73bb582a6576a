/** The report of an analysis as one HTML page that fetches nothing, and the files of its results. */

import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { npyHead } from '../derive/index.js';
import { cellBbox, gridByName } from '../grid/index.js';
import { type Html, html, htmlPage, PAGE_POLICY, trusted } from '../html/index.js';
import {
  type CellPart,
  type ColourScale,
  colourOfCode,
  encodeImage,
  type ImageService,
  parseZone,
  type RenderParams,
  type Zone,
} from '../imagery/index.js';
import type { ConcludeContext, TileCounts } from '../jobs/index.js';
import { and, createSearch, type Filter, parseFilter, parseSortby, type TileFinder } from '../query/index.js';
import { asStorageError, type Storage, type TileRecord } from '../storage/index.js';
import type { Curve } from './charts.js';
import type { AnalysedBand } from './tile-spectrum.js';

const CURVE_COLOURS = [
  '#0a63a8',
  '#c0640a',
  '#2b8a83',
  '#8a4fbd',
  '#b3304c',
  '#5b7a1e',
  '#767e86',
  '#a8790a',
];

/** For light and dark mode. */
const REPORT_STYLE = trusted(`
:root { color-scheme: light dark; --paper: #fbfaf7; --ink: #1b2126; --soft: #5a636b; --line: #dfdcd3; }
@media (prefers-color-scheme: dark) { :root { --paper: #14181b; --ink: #e9e7e1; --soft: #a3abb2; --line: #343b41; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 960px; padding: 32px 24px 48px; background: var(--paper); color: var(--ink); font: 16px/1.5 system-ui, sans-serif; }
h1 { font-size: 30px; line-height: 1.2; margin: 4px 0 8px; } h2 { font-size: 21px; margin: 40px 0 8px; }
.meta, .legend, caption, footer, figcaption { color: var(--soft); font-size: 13.5px; }
table { border-collapse: collapse; font-size: 13.5px; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: 4px 18px 4px 0; border-bottom: 1px solid var(--line); vertical-align: top; }
td.number, th.number { text-align: right; }
.scroll { max-height: 420px; overflow: auto; }
.chart { width: 100%; height: auto; } .chart text { fill: var(--soft); font-size: 12px; } .axes line { stroke: var(--line); }
.curve path { fill: none; stroke-width: 1.6; } .curve path.spread { stroke: none; opacity: 0.18; }
.legend span { margin-right: 16px; } .legend span::before { content: ''; display: inline-block; width: 18px; border-top: 3px solid currentColor; margin-right: 6px; vertical-align: 4px; }
${CURVE_COLOURS.map((colour, c) => `.curve.c${c} path { stroke: ${colour}; } .curve.c${c} path.spread { fill: ${colour}; } .legend .c${c} { color: ${colour}; }`).join('\n')}
.scale i { display: inline-block; width: 160px; height: 12px; margin: 0 8px; vertical-align: -1px; }
.key { display: inline-block; width: 14px; height: 14px; border-radius: 3px; }
.maps { display: flex; flex-wrap: wrap; gap: 16px; } figure { margin: 0; }
.maps img { height: 280px; width: auto; max-width: 100%; object-fit: contain; } .maps img, .matrix { image-rendering: pixelated; background: var(--line); } .matrix { width: 100%; max-width: 480px; }
code { font-family: ui-monospace, monospace; }
`);

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

interface Column {
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

export interface ReportMapStyle {
  title: string;
  look: RenderParams;
}

/** A map of one band, counted from 1. `range`: values of the first and the last colour, such as `0,1`; default: those of the tiles. */
export function bandMap(title: string, band: number, range?: string): ReportMapStyle {
  return { title, look: { bidx: [band], colormap_name: 'viridis', ...(range && { rescale: [range] }) } };
}

/** Tiles that are shown, the fullest first. */
const MAX_SHOWN_TILES = 6;

/** Returns one section of matching tiles for each style; none if no tile matches. Calls `warn` for maps that cannot be rendered. */
export async function mapSections(
  { finder, imagery }: { finder: TileFinder; imagery: ImageService },
  filter: Filter,
  looks: readonly ReportMapStyle[],
  warn: (tile: string, error: unknown) => void,
): Promise<Section[]> {
  const tiles = await fullestTiles(finder, filter, MAX_SHOWN_TILES);
  if (tiles.length === 0) return [];
  const sections: Section[] = [];
  for (const { title, look: wanted } of looks) {
    // The fullest tile determines the value range of all tiles, so that their colours are comparable.
    const scale = await imagery.colourScale(tiles[0], wanted).catch((error) => {
      warn(`the colours of ${title}`, error);
    });
    const look = scale ? { ...wanted, rescale: [`${scale.low},${scale.high}`] } : wanted;
    const figures: Html[] = [];
    for (const tile of tiles) {
      const drawn = await imagery.preview(tile, look, 'png', { part: partWithData(tile) }).catch((error) => {
        warn(`${title} of ${tile.id}`, error);
      });
      if (!drawn) continue;
      const picture = drawn.bytes.toString('base64');
      const name = tileLabel(tile);
      figures.push(
        html`<figure><img alt="${name}" src="data:image/png;base64,${picture}"><figcaption>${name}</figcaption></figure>`,
      );
    }
    if (figures.length > 0)
      sections.push({
        title,
        content: html`${scale ? colourBar(scale) : ''}<div class="maps">${figures}</div>`,
      });
  }
  return sections;
}

function colourBar({ low, high, colours }: ColourScale): Html {
  const [from, to] = [low, high].map((value) => String(Number(value.toPrecision(3))));
  return html`<p class="legend scale">${from!}<i style="background: linear-gradient(to right, ${colours.join(', ')})"></i>${to!}</p>`;
}

/** Returns the matching tiles with the highest pixel coverage. */
async function fullestTiles(finder: TileFinder, filter: Filter, limit: number): Promise<TileRecord[]> {
  return (await finder.find(createSearch(filter, { limit, order: parseSortby('-pixel_coverage') }))).tiles;
}

/** Returns the cell and day of a tile, such as "u336, 2022-07-24". */
const tileLabel = ({ geocode, start }: TileRecord) =>
  `${geocode}, ${new Date(start).toISOString().slice(0, 10)}`;

/** The smallest part of the cell that contains all data of a tile, extended to full pixels. */
function partWithData({ grid, geocode, footprint, groups: [group] }: TileRecord): CellPart {
  const { west, south, east, north } = gridByName(grid).bounds(geocode);
  const { width, height } = group!;
  const columns = footprint.map(([x]) => ((x - west) / (east - west)) * width);
  const rows = footprint.map(([, y]) => ((north - y) / (north - south)) * height);
  return {
    west: Math.floor(Math.min(...columns)) / width,
    east: Math.ceil(Math.max(...columns)) / width,
    north: Math.floor(Math.min(...rows)) / height,
    south: Math.ceil(Math.max(...rows)) / height,
  };
}

/** Tiles whose spectra are shown, the fullest first. */
const MAX_SHOWN_SPECTRA = 4;
/** Side of the square whose mean is shown. */
const SAMPLE_SIDE_PX = 5;

/**
 * Physical values of the mean spectrum of a small square in the middle of the data of some tiles. Tiles that lack data there in some band
 * are left out. Calls `warn` for tiles that cannot be read.
 */
export async function exampleSpectra(
  { finder, imagery }: { finder: TileFinder; imagery: ImageService },
  filter: Filter,
  bands: readonly AnalysedBand[],
  warn: (tile: string, error: unknown) => void,
): Promise<Curve[]> {
  const curves: Curve[] = [];
  for (const tile of await fullestTiles(finder, filter, MAX_SHOWN_SPECTRA)) {
    const region = middleOf(tile);
    const found = await imagery
      .spectra({ region, filter: and([filter, parseFilter({ ids: [tile.id] })]) })
      .catch((error) => {
        warn(`the spectrum of ${tile.id}`, error);
      });
    const date = found?.dates[0];
    const values = bands.map(
      ({ name }) => date?.mean[date.bands.findIndex((band) => band.name === name)] ?? NaN,
    );
    if (values.every(Number.isFinite)) curves.push({ name: tileLabel(tile), values });
  }
  return curves;
}

function middleOf(tile: TileRecord): Zone {
  const { grid, geocode, groups } = tile;
  const [west, south, east, north] = cellBbox(gridByName(grid), geocode);
  const part = partWithData(tile);
  const { width, height } = groups[0];
  const [x, y] = [(part.west + part.east) / 2, (part.north + part.south) / 2];
  const [dx, dy] = [SAMPLE_SIDE_PX / width / 2, SAMPLE_SIDE_PX / height / 2];
  const corner = (across: number, down: number) => [
    west + (east - west) * Math.min(1, Math.max(0, x + across * dx)),
    north - (north - south) * Math.min(1, Math.max(0, y + down * dy)),
  ];
  const ring = [corner(-1, -1), corner(1, -1), corner(1, 1), corner(-1, 1), corner(-1, -1)];
  return parseZone({ type: 'Polygon', coordinates: [ring] });
}

/** Colours range from blue (-1) over white (0) to red (1); NaN is grey. */
export async function matrixImage(values: Float64Array, size: number): Promise<Html> {
  const pixels = new Uint8Array(4 * size * size);
  const colourOf = (value: number) => {
    if (Number.isNaN(value)) return [128, 128, 128];
    const faint = Math.round(255 * (1 - Math.min(1, Math.abs(value))));
    return value < 0 ? [faint, faint, 255] : [255, faint, faint];
  };
  for (const [i, value] of values.entries()) pixels.set([...colourOf(value), 255], 4 * i);
  const picture = (await encodeImage(pixels, size, size, 'png')).toString('base64');
  return html`<figure><img class="matrix" alt="correlation of the bands" src="data:image/png;base64,${picture}"><figcaption>Bands in the order of the files, from the upper left; red is 1, white 0, blue -1.</figcaption></figure>`;
}

/** A NumPy file of f64. */
export function matrixFile(values: Float64Array, shape: number[]): Buffer {
  const bytes = new Uint8Array(values.buffer, values.byteOffset, values.byteLength);
  return Buffer.concat([npyHead('float64', shape), bytes]);
}

/** Writes result files of a job, by name. Throws the errors of the data folder. */
export async function writeFiles(
  storage: Storage,
  job: Pick<ConcludeContext, 'id' | 'file'>,
  files: Record<string, string | Uint8Array>,
): Promise<void> {
  const folder = await storage.results.makeFolder(job.id);
  for (const [name, content] of Object.entries(files)) {
    const path = join(folder, name);
    await writeFile(path, content).catch((error) => {
      throw asStorageError(error, path);
    });
    await job.file(name);
  }
}
