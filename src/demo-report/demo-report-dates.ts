/** A table of cells by dates: coverage and cloud of each tile. */
import { dateText, formatPercentValue, type Html, html } from '../html/index.js';
import { bestTile, type ReportCell } from './demo-report-cells.js';
import type { ReportTile } from './demo-report-data.js';
import { shadeStyle, tileText } from './demo-report-map.js';

/** A longer table is collapsed. */
const MAX_ROWS = 40;

/** Tiles of one cell and day, from overlapping scenes, share a field, which shows the best of them. */
export function dateTable(cells: ReportCell[]): Html {
  const days = [...new Set(cells.flatMap(({ tiles }) => tiles.map(dayKey)))].sort();
  const table = html`
<div class="scroll" tabindex="0" role="region" aria-label="Places by dates"><table class="dates">
<caption class="sr">Pixel coverage and cloud cover of each place and date</caption>
<thead><tr><th scope="col" rowspan="2">Place</th>${days.map((key) => html`<th scope="colgroup" colspan="2">${dateText(key)}</th>`)}</tr>
<tr>${days.map(() => html`<th scope="col">cover</th><th scope="col">cloud</th>`)}</tr></thead>
<tbody>${cells.map((cell) => row(cell, days))}</tbody></table></div>`;
  const note = html`<p class="note">Pixel coverage and cloud cover in percent. <span class="dot">●</span> picked by the search, – not assessed.</p>`;
  if (cells.length <= MAX_ROWS) return html`${note}${table}`;
  return html`${note}<details><summary>Show the table of all ${cells.length} places by date</summary>${table}</details>`;
}

function row({ geocode, tiles }: ReportCell, days: string[]): Html {
  const byDay = new Map<string, ReportTile[]>();
  for (const tile of tiles) byDay.set(dayKey(tile), [...(byDay.get(dayKey(tile)) ?? []), tile]);
  return html`<tr><th scope="row">${geocode}</th>${days.map((key) => fields(byDay.get(key)))}</tr>
`;
}

function fields(tiles: ReportTile[] | undefined): Html {
  if (!tiles) return html`<td class="absent" colspan="2"><span class="sr">no tile</span></td>`;
  const tile = bestTile(tiles);
  const tip = tiles.length > 1 ? `${tileText(tile)}; the best of ${tiles.length} tiles` : tileText(tile);
  const mark = tile.picked && html`<span class="dot">●</span><span class="sr"> picked</span>`;
  return html`<td class="cover" style="${shadeStyle(tile)}" data-tip="${tip}">${mark}${formatPercentValue(tile.coverage)}</td><td class="cloud${
    tile.cloudCover === null ? ' no-cloud' : ''
  }" style="${shadeStyle(tile)}" data-tip="${tip}">${formatPercentValue(tile.cloudCover)}</td>`;
}

/** The UTC day of a time. An invalid time is its own day. */
function dayKey({ time }: ReportTile): string {
  const date = new Date(time);
  return Number.isNaN(date.getTime()) ? time : date.toISOString().slice(0, 10);
}
