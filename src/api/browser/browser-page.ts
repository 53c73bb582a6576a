/// <reference lib="dom" />
/**
 * The map page: shows a collection as a map with the options of the form. A click shows the tiles of a point. The scripts
 * `browser-*` import only each other; each is served as `/map/<name>.js`, so file names are part of URLs.
 */
import type { Layer } from 'leaflet';
import { keepToken, TokenRequired, tileLayer } from './browser-access-token.js';
import { type MapPoint, type PageState, readAddress, writeAddress } from './browser-address.js';
import { type Band, type Indices, listItemBands, type MapStyle, mapStyles } from './browser-band-styles.js';
import { addGraticule } from './browser-graticule.js';
import { landLayer } from './browser-land.js';
import { L } from './browser-leaflet-global.js';
import { showLegend } from './browser-legend.js';
import { showPlace } from './browser-point-panel.js';
import {
  ask,
  type Collection,
  type Filter,
  type SearchAnswer,
  type TileJson,
  toSearchFilter,
} from './browser-requests.js';

const byId = <E extends HTMLElement>(id: string) => document.getElementById(id) as E;
const collection = byId<HTMLSelectElement>('collection');
const look = byId<HTMLSelectElement>('look');
const band = byId<HTMLSelectElement>('band');
const field = (id: string) => byId<HTMLInputElement>(id).value;
const isChecked = (id: string) => byId<HTMLInputElement>(id).checked;

// Outlines of tiles are drawn even at zoom levels without map tiles.
const map = L.map('map', { minZoom: 2, maxZoom: 22, worldCopyJump: true, zoomControl: false }).setView(
  [20, 0],
  2,
);
map.attributionControl.setPrefix('Leaflet');
L.control.zoom({ position: 'topright' }).addTo(map);
L.control.scale({ imperial: false }).addTo(map);
addGraticule(map);
const cells = L.layerGroup().addTo(map);
const pin = L.layerGroup().addTo(map);

const indices: Indices = JSON.parse(look.dataset.indices!);
let bands: Band[] = [];
let styles: MapStyle[] = [];
let tiles: Layer | undefined;
let minZoom = 0;
/** True if the view has too many tiles to draw their outlines. */
let isCrowded = false;
let place: MapPoint | undefined;
/** The state in the URL, until the page has applied it. */
let unappliedState: PageState | undefined = readAddress(location.hash);

/** Returns a function that runs `work`, and cancels the previous run if it has not ended. */
function cancelPrevious(work: (signal: AbortSignal) => Promise<void>): () => void {
  let current = new AbortController();
  return () => {
    current.abort();
    current = new AbortController();
    const { signal } = current;
    work(signal).catch((error) => {
      if (signal.aborted) return;
      showMessage(error.message);
      if (error instanceof TokenRequired) byId('access').hidden = false;
    });
  };
}

const land = landLayer(map, (error) => showMessage(error.message));
const drawLand = () => void (isChecked('land') ? land.addTo(map) : land.remove());

const showMessage = (message: string) => {
  byId('message').textContent = message;
};

const setBusy = (is: boolean) => {
  byId('busy').hidden = !is;
};

const FIELDS = ['collection', 'from', 'to', 'cloud', 'look', 'mosaic'];
const BAND_FIELDS = ['band', 'low', 'high', 'colours'];
const initialValues = new Map([...FIELDS, ...BAND_FIELDS].map((id) => [id, field(id)]));

/** Writes the state of the page to the URL. */
function updateUrl(): void {
  if (unappliedState) return;
  const { lat, lng: lon } = map.getCenter();
  const fields = look.value === 'band' ? [...FIELDS, ...BAND_FIELDS] : FIELDS;
  const touched = fields.filter((id) => field(id) !== initialValues.get(id));
  const choices = Object.fromEntries(touched.map((id) => [id, field(id)]));
  history.replaceState(
    null,
    '',
    `#${writeAddress({ view: { zoom: map.getZoom(), lat, lon }, place, choices })}`,
  );
}

/** Sets fields to the values in the URL, unless a list does not have the value. */
function setFields(ids: string[]): void {
  for (const id of ids) {
    const value = unappliedState?.choices[id];
    const input = byId<HTMLInputElement | HTMLSelectElement>(id);
    if (value === undefined) continue;
    if ('options' in input && ![...input.options].some((option) => option.value === value)) continue;
    input.value = value;
  }
}

function filter(): Filter {
  const [from, to, cloud] = [field('from'), field('to'), Number(field('cloud'))];
  return {
    ...((from || to) && { datetime: `${from || '..'}/${to || '..'}` }),
    ...(cloud < 100 && { maxCloud: cloud }),
  };
}

/** The selected style, which may be a single band. */
function selectedStyle(): MapStyle {
  const known = styles.find(({ label }) => label === look.value);
  if (known) return known;
  const [low, high, colours] = [field('low'), field('high'), field('colours')];
  const params = {
    expression: band.value,
    ...(low && high && { rescale: `${low},${high}` }),
    ...(colours && { colormap_name: colours }),
  };
  const label = band.selectedOptions[0]?.label ?? '';
  return { label, params, expression: band.value, values: label };
}

const mapUrl = (id: string) => `xyz/${encodeURIComponent(id)}`;

const drawMap = cancelPrevious(async (signal) => {
  byId('bands').hidden = look.value !== 'band';
  byId('most-cloud').textContent = field('cloud') === '100' ? 'any' : `${field('cloud')} %, if known`;
  const texts = Object.entries(filter()).map(([name, value]) => [name, String(value)]);
  const { params: renderOptions, label } = selectedStyle();
  const params = new URLSearchParams([...texts, ...Object.entries(renderOptions)]);
  if (field('mosaic')) params.set('pixel_selection', field('mosaic'));
  setBusy(true);
  const json = await ask<TileJson>(`${mapUrl(collection.value)}/tilejson.json?${params}`, signal).catch(
    (error) => {
      if (!signal.aborted) setBusy(false);
      throw error;
    },
  );
  tiles?.remove();
  const layer = tileLayer(`${mapUrl(collection.value)}/{z}/{x}/{y}{r}.png?${params}`, {
    attribution: escaped(json.attribution ?? ''),
    minZoom: json.minzoom,
    maxZoom: 22,
    maxNativeZoom: json.maxzoom,
  });
  tiles = layer.on({ loading: () => setBusy(true), load: () => setBusy(false) }).addTo(map);
  setBusy(layer.isLoading());
  showLegend(byId('legend'), label, json.colour_scale);
  minZoom = json.minzoom;
  showZoomHint();
});

function showZoomHint(): void {
  if (map.getZoom() < minZoom) {
    setBusy(false);
    showMessage('Zoom in to see the map.');
  } else showMessage(isCrowded ? 'Zoom in to see the outlines of tiles.' : '');
}

/** If there are more tiles, no outlines are drawn: a part of them would look complete. */
const MAX_OUTLINES = 1000;

const drawCells = cancelPrevious(async (signal) => {
  const view = map.getBounds();
  const west = Math.max(-180, view.getWest());
  const east = Math.min(180, view.getEast());
  if (!isChecked('outlines') || west >= east) return void cells.clearLayers();
  const bbox = [west, Math.max(-90, view.getSouth()), east, Math.min(90, view.getNorth())];
  const found = await ask<SearchAnswer>('search', signal, {
    ...toSearchFilter(filter()),
    collections: [collection.value],
    bbox,
    source: 'raw',
    limit: MAX_OUTLINES,
    fields: { include: ['geometry'] },
  });
  isCrowded = (found.numberMatched ?? 0) > MAX_OUTLINES;
  showZoomHint();
  if (isCrowded) return void cells.clearLayers();
  // Most tiles of a cell have the same outline.
  const outlines = new Map(found.features.map(({ geometry }) => [JSON.stringify(geometry), geometry]));
  cells.clearLayers();
  L.geoJSON([...outlines.values()], { interactive: false, style: { className: 'cell', weight: 1 } }).addTo(
    cells,
  );
});

const drawPlace = cancelPrevious(async (signal) => {
  if (!place) return;
  await showPlace(byId('place'), place, {
    collection: collection.value,
    filter: filter(),
    style: selectedStyle(),
    signal,
  });
});

const showCollection = cancelPrevious(async (signal) => {
  const id = encodeURIComponent(collection.value);
  const [{ features }, json] = await Promise.all([
    ask<SearchAnswer>(`collections/${id}/items?limit=1&source=raw`, signal),
    ask<TileJson>(`${mapUrl(collection.value)}/tilejson.json`, signal),
  ]);
  bands = features.flatMap(listItemBands);
  styles = mapStyles(bands, indices);
  look.replaceChildren(...styles.map(({ label }) => new Option(label)), new Option('One band', 'band'));
  band.replaceChildren(...bands.map(({ label, expression }) => new Option(label, expression)));
  setFields(FIELDS.concat(BAND_FIELDS));
  if (unappliedState?.place) pinTo(unappliedState.place);
  if (unappliedState?.view)
    map.setView([unappliedState.view.lat, unappliedState.view.lon], unappliedState.view.zoom);
  else showExtent(json);
  unappliedState = undefined;
  drawAll();
});

/** Shows the entire collection, or one tile if the collection is too large for a map. */
function showExtent({
  bounds: [west, south, east, north],
  center: [lon, lat, zoom],
  minzoom,
}: TileJson): void {
  const bounds: [[number, number], [number, number]] = [
    [south, west],
    [north, east],
  ];
  if (map.getBoundsZoom(bounds) < minzoom) map.setView([lat, lon], zoom);
  else map.fitBounds(bounds);
}

function pinTo(at: MapPoint): void {
  place = at;
  pin.clearLayers();
  L.circleMarker([at.lat, at.lon], { className: 'pin', radius: 7, interactive: false }).addTo(pin);
}

/** Returns an error message for the form; undefined if it is valid. */
function validateChoices(): string | undefined {
  if (field('from') && field('to') && field('from') > field('to')) return 'From is later than To.';
  const [low, high] = [field('low'), field('high')];
  if (low && high && Number(low) >= Number(high)) return 'Darkest must be less than Brightest.';
  return undefined;
}

function drawAll(): void {
  const fault = validateChoices();
  if (fault) return void showMessage(fault);
  updateUrl();
  drawMap();
  drawCells();
  drawLand();
  drawPlace();
}

/** Escapes HTML, because Leaflet shows attributions as HTML. */
function escaped(text: string): string {
  const node = document.createElement('span');
  node.textContent = text;
  return node.innerHTML;
}

collection.addEventListener('change', showCollection);
byId('controls').addEventListener('change', (event) => {
  if (event.target !== collection) drawAll();
});
map.on('moveend', () => {
  updateUrl();
  drawCells();
  showZoomHint();
});
map.on('click', ({ latlng: { lat, lng } }) => {
  pinTo({ lon: ((((lng + 180) % 360) + 360) % 360) - 180, lat });
  updateUrl();
  drawPlace();
});

byId('access').addEventListener('submit', (event) => {
  event.preventDefault();
  keepToken(field('token'));
  location.reload();
});

if (window.innerWidth < 700) byId<HTMLDetailsElement>('settings').open = false;
drawLand();
// The user opened another link to this page.
window.addEventListener('hashchange', () => location.reload());
cancelPrevious(async (signal) => {
  const { collections } = await ask<{ collections: Collection[] }>('collections', signal);
  const shown = collections.filter(({ links }) => links.some(({ rel }) => rel === 'xyz'));
  if (shown.length === 0)
    return showMessage('There are no tiles yet. Ingest a scene, then reload this page.');
  collection.replaceChildren(...shown.map(({ id, title }) => new Option(title, id)));
  setFields(['collection']);
  showCollection();
})();
