/** The tiles of each cell: a map in true proportion, with picture, coverage and cloud cover, and a table by date. */
import type { Bbox } from '../grid/index.js';
import {
  dateText,
  decimalsOf,
  formatPercentValue,
  type Html,
  html,
  multiplesBetween,
  niceBelow,
  niceStep,
} from '../html/index.js';
import { plural } from '../utils/text.js';
import { bestTile, type ReportCell, type ReportTile } from './data.js';

/** Kilometres of one degree along a meridian, on a sphere of 6371 km. */
const KM_PER_DEGREE = 111.19;
/** Maximum height of the map, pixels: a higher map is made narrower. The latitude labels need some width too. */
const MAX_HEIGHT = 640;
const LATITUDES_WIDTH = 56;
const EMBEDDED_IMAGE = /^data:image\/(png|webp|jpeg);base64,[A-Za-z0-9+/]+=*$/;

interface Frame {
  west: number;
  north: number;
  width: number;
  height: number;
  /** Height over width on the ground, at the middle latitude. */
  ratio: number;
  kmAcross: number;
}

export function tileMap(cells: ReportCell[]): Html {
  if (cells.length === 0) return html`<p class="none">There are no tiles.</p>`;
  const boxes = unwrapped(cells.map(({ shown }) => shown.bbox));
  const frame = frameOf(boxes);
  return html`
<div class="map-block" style="max-width:${Math.round(MAX_HEIGHT / frame.ratio) + LATITUDES_WIDTH}px">
<fieldset class="switch"><legend>Shade places by</legend>
<label><input type="radio" name="shade" value="picture" checked> picture</label>
<label><input type="radio" name="shade" value="cover"> coverage</label>
<label><input type="radio" name="shade" value="cloud"> cloud</label></fieldset>
<div class="map">
<div class="lats" aria-hidden="true">${latitudeTicks(frame)}</div>
<ul class="cells" aria-label="Map of places, ${plural(cells.length, 'place')}" style="aspect-ratio:1/${frame.ratio.toFixed(4)}">
${cells.map((cell, i) => cellMarkup(cell, boxes[i]!, frame))}
</ul>
<div class="lons" aria-hidden="true">${longitudeTicks(frame)}</div>
${ruler(frame)}
</div>
<div class="legend">
<span><i class="key outline"></i> picked by the search</span>
<span><i class="key cover"></i> pixel coverage, percent</span>
<span><i class="key cloud"></i> cloud cover, percent (– not assessed)</span></div>
</div>`;
}

/** A description of a tile in one line. */
function tileText(tile: ReportTile): string {
  const cloud =
    tile.cloudCover === null ? 'cloud not assessed' : `cloud ${formatPercentValue(tile.cloudCover)} %`;
  const picked = tile.picked ? 'picked' : 'not picked';
  return `${tile.geocode}, ${dateText(tile.time)}: coverage ${formatPercentValue(tile.coverage)} %, ${cloud}, ${picked}`;
}

function cellMarkup({ geocode, shown, tiles }: ReportCell, box: Bbox, frame: Frame): Html {
  const share = (length: number, whole: number) => `${((length / whole) * 100).toFixed(3)}%`;
  const picked = tiles.filter((tile) => tile.picked).length;
  const dates = tiles.length > 1 ? `; ${picked} of ${tiles.length} tiles of this place picked` : '';
  const style = [
    `left:${share(box[0] - frame.west, frame.width)}`,
    `top:${share(frame.north - box[3], frame.height)}`,
    `width:${share(box[2] - box[0], frame.width)}`,
    `height:${share(box[3] - box[1], frame.height)}`,
    shadeStyle(shown),
  ].join(';');
  const image = shown.preview !== undefined && EMBEDDED_IMAGE.test(shown.preview) ? shown.preview : null;
  return html`<li class="cell${shown.picked ? ' picked' : ''}${shown.cloudCover === null ? ' no-cloud' : ''}" style="${style}" data-tip="${tileText(shown)}${dates}">${
    image && html`<img src="${image}" alt="Satellite picture of place ${geocode}, ${dateText(shown.time)}">`
  }<span class="code">${geocode}</span><span class="figures"><span class="figure cover"><span class="sr">coverage </span>${formatPercentValue(shown.coverage)}</span><span class="figure cloud"><span class="sr">cloud </span>${formatPercentValue(shown.cloudCover)}</span></span><span class="meter cover"></span><span class="meter cloud"></span></li>
`;
}

/** CSS variables that shade by coverage and cloud. */
function shadeStyle({ coverage, cloudCover }: ReportTile): string {
  return `--cover:${coverage.toFixed(1)};--cloud:${(cloudCover ?? 0).toFixed(1)}`;
}

/** Shifts boxes west of the antimeridian by 360 degrees if the boxes are on both sides of it. */
function unwrapped(boxes: Bbox[]): Bbox[] {
  const wests = boxes.map(([west]) => west);
  if (Math.max(...wests) - Math.min(...wests) <= 180) return boxes;
  return boxes.map(([west, south, east, north]) =>
    west < 0 ? [west + 360, south, east + 360, north] : [west, south, east, north],
  );
}

function frameOf(boxes: Bbox[]): Frame {
  const west = Math.min(...boxes.map((box) => box[0]));
  const south = Math.min(...boxes.map((box) => box[1]));
  const width = Math.max(...boxes.map((box) => box[2])) - west;
  const north = Math.max(...boxes.map((box) => box[3]));
  const height = north - south;
  const shrink = Math.cos((((north + south) / 2) * Math.PI) / 180);
  const kmAcross = width * shrink * KM_PER_DEGREE;
  return { west, north, width, height, ratio: (height * KM_PER_DEGREE) / kmAcross, kmAcross };
}

function ruler({ kmAcross }: Frame): Html {
  const km = niceBelow(kmAcross / 5);
  const text = km < 1 ? `${km * 1000} m` : `${km} km`;
  return html`<p class="ruler"><i style="width:${((km / kmAcross) * 100).toFixed(2)}%"></i> ${text}</p>`;
}

function longitudeTicks({ west, width }: Frame): Html[] {
  return ticks(west, width).map(({ value, share, decimals }) => {
    const lon = value > 180 ? value - 360 : value;
    return html`<span style="left:${(share * 100).toFixed(2)}%">${degrees(lon, decimals, 'E', 'W')}</span>`;
  });
}

function latitudeTicks({ north, height }: Frame): Html[] {
  return ticks(north - height, height).map(
    ({ value, share, decimals }) =>
      html`<span style="top:${((1 - share) * 100).toFixed(2)}%">${degrees(value, decimals, 'N', 'S')}</span>`,
  );
}

function ticks(from: number, length: number): { value: number; share: number; decimals: number }[] {
  const step = niceStep(length / 4);
  const decimals = decimalsOf(step);
  return multiplesBetween(from, from + length, step).map((value) => ({
    value,
    share: (value - from) / length,
    decimals,
  }));
}

function degrees(value: number, decimals: number, positive: string, negative: string): string {
  const letter = Math.abs(value) < 1e-9 ? '' : ` ${value > 0 ? positive : negative}`;
  return `${Math.abs(value).toFixed(decimals)}°${letter}`;
}

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
