/** The mix of searches: 100 items of a box, a month and a limit of cloud; of a polygon; of the newest up to a day. */
import { cellBbox, geohash } from '../../src/grid/index.js';
import { cellsOf, DAY_MS, FIRST_DAY, MONTH, randomNumbers, regionKey, type Tiles } from './tile-rows.js';

export type Kind = 'box' | 'polygon' | 'newest';

export interface SearchRequest {
  kind: Kind;
  /** JSON of a `POST /search`. */
  body: string;
}

/** The kinds of ten requests. */
const MIX: Kind[] = [
  'box',
  'polygon',
  'newest',
  'box',
  'polygon',
  'box',
  'newest',
  'polygon',
  'box',
  'newest',
];

/** The same requests for a seed. */
export function searchRequests(tiles: Tiles, count: number, seed: number): SearchRequest[] {
  const random = randomNumbers(seed);
  const make: Record<Kind, () => object> = {
    box: () => box(tiles, random),
    polygon: () => polygon(tiles, random),
    newest: () => newest(tiles, random),
  };
  return Array.from({ length: count }, (_, i) => {
    const kind = MIX[i % MIX.length];
    return { kind, body: JSON.stringify({ limit: 100, ...make[kind]() }) };
  });
}

type Random = () => number;

const days = ({ dates, daysBetween }: Tiles) => dates * daysBetween;
const iso = (time: number) => new Date(time).toISOString();

function box(tiles: Tiles, random: Random): object {
  const region = Math.floor(random() * tiles.regions);
  const start = FIRST_DAY + Math.floor(random() * Math.max(1, days(tiles) - 30)) * DAY_MS;
  return {
    bbox: cellBbox(geohash, geohash.geocode(regionKey(region), 3)),
    datetime: `${iso(start)}/${iso(start + MONTH)}`,
    filter: { op: '<=', args: [{ property: 'eo:cloud_cover' }, 20] },
    'filter-lang': 'cql2-json',
  };
}

/** A polygon around a cell: it extends up to 0.4 degrees in each direction and is not always convex. */
function polygon(tiles: Tiles, random: Random): object {
  const cells = cellsOf(geohash, Math.floor(random() * tiles.regions), tiles.cellsOfRegion);
  const [west, south, east, north] = cellBbox(geohash, cells[Math.floor(random() * cells.length)]);
  const corners = 5 + Math.floor(random() * 8);
  const ring = Array.from({ length: corners }, (_, i) => {
    const angle = (2 * Math.PI * i) / corners;
    const radius = 0.1 + 0.3 * random();
    const longitude = within(180, (west + east) / 2 + radius * Math.cos(angle));
    const latitude = within(90, (south + north) / 2 + radius * Math.sin(angle));
    return [longitude, latitude].map((degrees) => Number(degrees.toFixed(5)));
  });
  return { intersects: { type: 'Polygon', coordinates: [[...ring, ring[0]]] } };
}

const within = (limit: number, degrees: number) => Math.max(-limit, Math.min(limit, degrees));

function newest(tiles: Tiles, random: Random): object {
  const end = FIRST_DAY + ((days(tiles) * (1 + random())) / 2) * DAY_MS;
  return { datetime: `../${iso(end)}`, sortby: [{ field: 'properties.datetime', direction: 'desc' }] };
}
