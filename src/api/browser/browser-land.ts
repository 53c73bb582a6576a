/// <reference lib="dom" />
/** Land and country borders below the map tiles, from the TopoJSON files of Natural Earth that this server has. */
import type { MultiPolygon, Position } from 'geojson';
import type { LatLngTuple, LayerGroup, Map as LeafletMap, Renderer } from 'leaflet';
import type { GeometryCollection, Topology } from 'topojson-specification';
import { request } from './browser-access-token.js';
import { L } from './browser-leaflet-global.js';

/** The page loads it as a classic script before its modules. */
const { topojson } = globalThis as unknown as { topojson: typeof import('topojson-client') };

/** From this zoom on, the map has the file of scale 1:50 million instead of 1:110 million. */
const DETAILED_ZOOM = 5;
const CREDIT = '<a href="https://www.naturalearthdata.com/">Natural Earth</a>';
const SOUTH_POLE = -90;
/** Land is drawn this far beyond each side of the view, as a part of the view's size, so that it is there while the user moves the map. */
const PADDING = 0.5;
/** Land that crosses the antimeridian ends at most this many degrees beyond it (the east of Siberia). */
const MAX_OVERHANG = 11;

type World = Topology<{ land: GeometryCollection; countries: GeometryCollection }>;

/** Outlines of land and lines of borders. Longitudes are continuous, so some are beyond 180 degrees. */
interface Shapes {
  land: LatLngTuple[][][];
  borders: LatLngTuple[][];
}

const loading = new Map<string, Promise<Shapes>>();

/** A layer that loads its files when it is first on the map. `onFailure` is called if a file cannot be loaded. */
export function landLayer(map: LeafletMap, onFailure: (error: Error) => void): LayerGroup {
  map.createPane('land').style.zIndex = '140';
  const renderer = L.canvas({ pane: 'land', padding: PADDING });
  const layer = L.layerGroup([], { attribution: CREDIT });
  let drawn = '';
  const draw = async () => {
    const scale = map.getZoom() < DETAILED_ZOOM ? '110m' : '50m';
    const shapes = await shapesOf(scale);
    const { first, last } = worldsInView(map);
    const wanted = `${scale} ${first} ${last}`;
    if (wanted === drawn || !map.hasLayer(layer)) return;
    drawn = wanted;
    layer.clearLayers();
    for (let world = first; world <= last; world++) addShapes(layer, shapes, world * 360, renderer);
  };
  const update = () => void draw().catch(onFailure);
  layer.on('add', () => {
    map.on('moveend', update);
    update();
  });
  layer.on('remove', () => map.off('moveend', update));
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => {
    drawn = '';
    if (map.hasLayer(layer)) update();
  });
  return layer;
}

/** Numbers of the copies of the world that the view shows. World 0 has the longitudes from -180 to 180 degrees. */
function worldsInView(map: LeafletMap): { first: number; last: number } {
  const view = map.getBounds().pad(PADDING);
  const world = (longitude: number) => Math.floor((longitude + 180) / 360);
  return { first: world(view.getWest() - MAX_OVERHANG), last: world(view.getEast() + MAX_OVERHANG) };
}

function addShapes(layer: LayerGroup, { land, borders }: Shapes, shift: number, renderer: Renderer): void {
  const style = getComputedStyle(document.documentElement);
  const move = (line: LatLngTuple[]) => line.map(([lat, lon]): LatLngTuple => [lat, lon + shift]);
  const fixed = { renderer, interactive: false };
  const fill = { ...fixed, stroke: false, fillColor: style.getPropertyValue('--land'), fillOpacity: 1 };
  for (const rings of land) L.polygon(rings.map(move), fill).addTo(layer);
  const stroke = { ...fixed, color: style.getPropertyValue('--border'), weight: 1 };
  L.polyline(borders.map(move), stroke).addTo(layer);
}

function shapesOf(scale: string): Promise<Shapes> {
  const known = loading.get(scale) ?? readShapes(scale);
  loading.set(scale, known);
  // A file that could not be loaded is requested again by the next draw.
  known.catch(() => loading.delete(scale));
  return known;
}

async function readShapes(scale: string): Promise<Shapes> {
  const path = `map/land-${scale}.json`;
  const response = await request(path);
  if (!response.ok) throw new Error(`${path} answered ${response.status}`);
  const world = (await response.json()) as World;
  const { features } = topojson.feature(world, world.objects.land);
  return {
    land: features.flatMap(({ geometry }) =>
      (geometry as MultiPolygon).coordinates.map((rings) => rings.map(ringOf)),
    ),
    borders: topojson
      .mesh(world, world.objects.countries, (one, other) => one !== other)
      .coordinates.map(continuous),
  };
}

/** A ring in a plane. The coast of Antarctica goes round the pole: a line along the pole closes it. */
function ringOf(ring: Position[]): LatLngTuple[] {
  const line = continuous(ring);
  const [start, end] = [line[0][1], line.at(-1)![1]];
  return start === end ? line : [...line, [SOUTH_POLE, end], [SOUTH_POLE, start]];
}

/** Latitudes and longitudes of a line. If the line crosses the antimeridian, longitudes go on beyond 180 or -180 degrees. */
function continuous(line: Position[]): LatLngTuple[] {
  let shift = 0;
  return line.map(([lon, lat], i) => {
    const step = i === 0 ? 0 : lon - line[i - 1][0];
    if (Math.abs(step) > 180) shift -= 360 * Math.sign(step);
    return [lat, lon + shift];
  });
}
