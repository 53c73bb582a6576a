/// <reference lib="dom" />
/** What there is at a place: the chart of its values, and its tiles by date. */
import { hasToken, showPicture } from './access.js';
import { ask, type Filter, type Found, type Item, inSearch, type Series } from './api.js';
import { chartOf } from './chart.js';
import type { Look } from './looks.js';

export interface Place {
  lon: number;
  lat: number;
}

/** Tiles that are listed, newest first. */
const MOST = 100;

/** Fills `panel`. Throws what the server says is wrong. */
export async function showPlace(
  panel: HTMLElement,
  { lon, lat }: Place,
  request: { collection: string; filter: Filter; look: Look; signal: AbortSignal },
): Promise<void> {
  const { filter, look, signal } = request;
  const point = { type: 'Point', coordinates: [lon, lat] };
  const collections = [request.collection];
  const fields = ['properties.datetime', 'properties.eo:cloud_cover', 'properties.pixel_coverage'];
  const [found, { series }] = await Promise.all([
    ask<Found>('search', signal, {
      ...inSearch(filter),
      collections,
      intersects: point,
      source: 'raw',
      limit: MOST,
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
    figure.append(text('figcaption', caption), chartOf(values, look.values));
  } else if (series.length > 0) figure.append(text('figcaption', `${look.values}: no date is clear here`));
  const list = document.createElement('ol');
  list.append(...found.features.map((item) => entryOf(item, request.collection)));
  const none =
    found.features.length === 0 ? [text('p', 'No tile is here. Another place, or other dates?')] : [];
  panel.replaceChildren(heading, figure, ...none, list);
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
