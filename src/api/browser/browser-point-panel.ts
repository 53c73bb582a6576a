/// <reference lib="dom" />
/** The panel of a point: the chart of its values, its spectra, and its tiles by date. */
import { hasToken, showPicture } from './browser-access-token.js';
import type { MapPoint } from './browser-address.js';
import type { MapStyle } from './browser-band-styles.js';
import { seriesChart } from './browser-chart.js';
import { html } from './browser-plot.js';
import {
  ask,
  type Filter,
  type Item,
  type SearchAnswer,
  type Series,
  type Spectra,
  toSearchFilter,
} from './browser-requests.js';
import { linesOf, spectrumChart } from './browser-spectrum.js';

/** The newest tiles are listed. */
const MAX_TILES = 100;
/** The spectra of the newest dates are read: more than are drawn, because the point may be under cloud. */
const MAX_SPECTRA = 12;

/** Fills `panel`. Throws errors of the server. */
export async function showPlace(
  panel: HTMLElement,
  { lon, lat }: MapPoint,
  request: { collection: string; filter: Filter; style: MapStyle; signal: AbortSignal },
): Promise<void> {
  const { filter, style, signal } = request;
  const point = { type: 'Point', coordinates: [lon, lat] };
  const collections = [request.collection];
  const fields = [
    'bbox',
    'properties.datetime',
    'properties.eo:cloud_cover',
    'properties.pixel_coverage',
    'properties.hsi:wavelength_min',
  ];
  const [found, { series }] = await Promise.all([
    ask<SearchAnswer>('search', signal, {
      ...toSearchFilter(filter),
      collections,
      intersects: point,
      source: 'raw',
      limit: MAX_TILES,
      fields: { include: fields },
    }),
    ask<Series>('timeseries', signal, {
      ...filter,
      collections,
      geometry: point,
      expression: style.expression,
    }),
  ]);
  const values = series.flatMap(({ datetime, value }) =>
    value === null ? [] : [{ time: Date.parse(datetime), value }],
  );
  const position = `${Math.abs(lat).toFixed(4)}°${lat < 0 ? 'S' : 'N'}, ${Math.abs(lon).toFixed(4)}°${lon < 0 ? 'W' : 'E'}`;
  const heading = html('h2', { textContent: position });
  const figure = html('figure');
  if (values.length > 0) {
    const caption = `${style.values}, ${values.length} of ${series.length} dates are clear`;
    figure.append(html('figcaption', { textContent: caption }), seriesChart(values, style.values));
  } else if (series.length > 0) {
    const dates = series.length === 1 ? 'On its only date' : `On all ${series.length} dates`;
    figure.append(
      html('figcaption', { textContent: `${dates} this place is under cloud or shadow, or has no data.` }),
    );
  }
  const here = found.features.filter(({ bbox }) => contains(bbox, lon, lat));
  const spectrum = await spectrumOf(here, { filter, collections, geometry: point, signal });
  const list = html('ol');
  list.append(...here.map((item) => entryOf(item, request.collection)));
  const none =
    here.length === 0
      ? [html('p', { textContent: 'No tile has this point. Try another point or other dates.' })]
      : [];
  panel.replaceChildren(heading, figure, ...spectrum, ...none, list);
}

/** A figure with the spectra of the newest dates. Empty if the tiles have no spectra. */
async function spectrumOf(
  tiles: Item[],
  {
    signal,
    filter,
    ...where
  }: { filter: Filter; collections: string[]; geometry: object; signal: AbortSignal },
): Promise<HTMLElement[]> {
  const times = tiles
    .filter(({ properties }) => properties['hsi:wavelength_min'] !== undefined)
    .map(({ properties }) => String(properties['datetime']));
  if (times.length === 0) return [];
  const [newest, oldest] = [times[0], times.slice(0, MAX_SPECTRA).at(-1)];
  const spectra = await ask<Spectra>('spectra', signal, {
    ...filter,
    ...where,
    datetime: `${oldest}/${newest}`,
  });
  const lines = linesOf(spectra);
  if (lines.length === 0) return [];
  const figure = html('figure');
  figure.append(html('figcaption', { textContent: 'Spectrum, wavelength in nm' }), ...spectrumChart(lines));
  return [figure];
}

/** Cells are half-open, except at the edges of the world, so that a point on a shared edge is in one cell only. */
function contains([west, south, east, north]: Item['bbox'], lon: number, lat: number): boolean {
  return lon >= west && (lon < east || east === 180) && lat >= south && (lat < north || north === 90);
}

function entryOf({ id, properties }: Item, collection: string): HTMLLIElement {
  const cloud = properties['eo:cloud_cover'];
  const entry = html('li');
  const picture = html('img', { alt: '', loading: 'lazy', width: 56, height: 56 });
  // A tile without a picture is still listed with its date.
  showPicture(picture, `preview/${encodeURIComponent(id)}.png`).catch(() => picture.remove());
  const date = String(properties['datetime']).slice(0, 16).replace('T', ' ');
  const link = html('a', { title: id, textContent: date });
  // A link cannot send a token.
  if (!hasToken())
    link.href = `collections/${encodeURIComponent(collection)}/items/${encodeURIComponent(id)}`;
  const known = typeof cloud === 'number' ? `cloud ${Math.round(cloud)} %` : 'cloud unknown';
  const covered = `${Math.round(Number(properties['pixel_coverage']))} % covered`;
  const about = html('div');
  about.append(link, html('small', { textContent: `${known}, ${covered}` }));
  entry.append(picture, about);
  return entry;
}
