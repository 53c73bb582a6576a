/// <reference lib="dom" />
/** What there is at a place: the chart of its values, and its tiles by date. */
import { hasToken, showPicture } from './access.js';
import type { MapPoint } from './address.js';
import {
  ask,
  type Filter,
  type Item,
  type SearchAnswer,
  type Series,
  type Spectra,
  toSearchFilter,
} from './api.js';
import { seriesChart } from './chart.js';
import type { MapStyle } from './looks.js';
import { linesOf, spectrumChart } from './spectrum.js';

/** Tiles that are listed, newest first. */
const MAX_TILES = 100;
/** Dates whose spectra are read, the newest: the place may be under cloud on some. */
const MAX_SPECTRA = 12;

/** Fills `panel`. Throws what the server says is wrong. */
export async function showPlace(
  panel: HTMLElement,
  { lon, lat }: MapPoint,
  request: { collection: string; filter: Filter; look: MapStyle; signal: AbortSignal },
): Promise<void> {
  const { filter, look, signal } = request;
  const point = { type: 'Point', coordinates: [lon, lat] };
  const collections = [request.collection];
  const fields = [
    ...['bbox', 'properties.datetime', 'properties.eo:cloud_cover', 'properties.pixel_coverage'],
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
      expression: look.expression,
    }),
  ]);
  const values = series.flatMap(({ datetime, value }) =>
    value === null ? [] : [{ time: Date.parse(datetime), value }],
  );
  const heading = text(
    'h2',
    `${Math.abs(lat).toFixed(4)}°${lat < 0 ? 'S' : 'N'}, ${Math.abs(lon).toFixed(4)}°${lon < 0 ? 'W' : 'E'}`,
  );
  const figure = document.createElement('figure');
  if (values.length > 0) {
    const caption = `${look.values}, ${values.length} of ${series.length} dates are clear`;
    figure.append(text('figcaption', caption), seriesChart(values, look.values));
  } else if (series.length > 0) {
    const dates = series.length === 1 ? 'On its only date' : `On all ${series.length} dates`;
    figure.append(text('figcaption', `${dates} this place is under cloud or shadow, or has no data.`));
  }
  const here = found.features.filter(({ bbox }) => holds(bbox, lon, lat));
  const spectrum = await spectrumOf(here, { filter, collections, geometry: point, signal });
  const list = document.createElement('ol');
  list.append(...here.map((item) => entryOf(item, request.collection)));
  const none = here.length === 0 ? [text('p', 'No tile is here. Another place, or other dates?')] : [];
  panel.replaceChildren(heading, figure, ...spectrum, ...none, list);
}

/** A figure with the spectra of the newest dates; nothing where the tiles have none. */
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
  const figure = document.createElement('figure');
  figure.append(text('figcaption', 'Spectrum, wavelength in nm'), ...spectrumChart(lines));
  return [figure];
}

/** Cells are half-open, but for the edges of the world: a place on an edge between them is of one only. */
function holds([west, south, east, north]: Item['bbox'], lon: number, lat: number): boolean {
  return lon >= west && (lon < east || east === 180) && lat >= south && (lat < north || north === 90);
}

function entryOf({ id, properties }: Item, collection: string): HTMLLIElement {
  const cloud = properties['eo:cloud_cover'];
  const entry = document.createElement('li');
  const picture = Object.assign(document.createElement('img'), {
    alt: '',
    loading: 'lazy',
    width: 56,
    height: 56,
  });
  // A tile without a picture has its date, which is what the list is of.
  showPicture(picture, `preview/${encodeURIComponent(id)}.png`).catch(() => picture.remove());
  const link = Object.assign(text('a', String(properties['datetime']).slice(0, 16).replace('T', ' ')), {
    title: id,
  });
  // A link carries no token.
  if (!hasToken())
    link.href = `collections/${encodeURIComponent(collection)}/items/${encodeURIComponent(id)}`;
  const known = typeof cloud === 'number' ? `cloud ${Math.round(cloud)} %` : 'cloud not known';
  const covered = `${Math.round(Number(properties['pixel_coverage']))} % covered`;
  const about = document.createElement('div');
  about.append(link, text('small', `${known}, ${covered}`));
  entry.append(picture, about);
  return entry;
}

function text<K extends keyof HTMLElementTagNameMap>(name: K, content: string): HTMLElementTagNameMap[K] {
  const node = document.createElement(name);
  node.textContent = content;
  return node;
}
