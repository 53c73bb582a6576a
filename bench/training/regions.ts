/** The training land: a scene of six dates for each place, in different regions, arranged so that every node has as many places. */
import {
  REGIONS,
  SERIES_EPSG,
  SERIES_PIXEL,
  type SeriesDate,
  writeSentinelLikeSeries,
} from '../../data-samples/index.js';
import { hasEnded, type JobDocument } from '../../src/client/jobs.js';
import { geohash } from '../../src/grid/index.js';
import { createTransform, crsFromEpsg } from '../../src/raster/index.js';
import { ask, eventually, type Server } from '../cluster/servers.js';

export const COLLECTION = 'regions';
const PRECISION = 5;
/** Precision of the cells by which nodes own tiles. Each place lies in a different one. */
const SLOT_PRECISION = 4;
/** Degrees, within one zone of UTM. */
export const LAND = { west: 12.6, south: 45, east: 17.4, north: 52 };
/** Metres around a cell. */
const MARGIN = 50;

/** Three pairs of a date without cloud and a cloudy one. */
export const DATES: SeriesDate[] = [
  { datetime: '2023-04-20T10:06:20Z', cloudShare: 0.25 },
  { datetime: '2023-04-25T10:06:22Z', cloudShare: 0 },
  { datetime: '2023-06-12T10:06:20Z', cloudShare: 0.3 },
  { datetime: '2023-06-17T10:06:22Z', cloudShare: 0 },
  { datetime: '2023-07-27T10:06:24Z', cloudShare: 0.2 },
  { datetime: '2023-08-01T10:06:22Z', cloudShare: 0 },
];

export interface RegionPlace {
  geocode: string;
  region: string;
}

/** Creates and ingests `count` places, the same number on each node if `count` can be divided evenly. */
export async function layRegions(nodes: Server[], count: number, folder: string): Promise<RegionPlace[]> {
  const geocodes = await spots(nodes, count);
  const names = Object.keys(REGIONS) as (keyof typeof REGIONS)[];
  const places: RegionPlace[] = [];
  const href: string[] = [];
  for (const [i, geocode] of geocodes.entries()) {
    const region = names[i % names.length]!;
    const files = await writeSentinelLikeSeries(folder, {
      ...{ name: geocode, dates: DATES, seed: 1000 * (i + 1), region: REGIONS[region], swir16: true },
      ...extentOf(geocode),
    });
    href.push(...files.map(({ path }) => path));
    places.push({ geocode, region });
  }
  const inputs = { href, collection: COLLECTION, precision: PRECISION, scale: 0.0001, maskBand: 5 };
  let job: JobDocument | undefined;
  const { jobID } = await ask<JobDocument>(nodes[0]!, '/ingest', inputs);
  await eventually('the regions are taken in', async () => {
    job = await ask<JobDocument>(nodes[0]!, `/jobs/${jobID}`);
    return hasEnded(job.status);
  });
  if (job?.status !== 'successful') throw new Error(`the ingest of the regions: ${JSON.stringify(job)}`);
  return places;
}

/** Cells whose first owner is each node in turn; no two cells are near each other. */
async function spots(nodes: Server[], count: number): Promise<string[]> {
  const known = await ask<{ nodes: { id: string; url: string }[] }>(nodes[0]!, '/cluster/nodes');
  const ids = nodes.map(({ url }) => known.nodes.find((node) => node.url === url)!.id);
  const found = new Map(ids.map((id) => [id, [] as string[]]));
  const each = Math.ceil(count / ids.length);
  for (const slot of geohash.cover(LAND, SLOT_PRECISION)) {
    if ([...found.values()].every((cells) => cells.length === each)) break;
    const { west, south, east, north } = geohash.bounds(slot);
    const middle = geohash.encode((west + east) / 2, (south + north) / 2, PRECISION);
    const { owners } = await ask<{ owners: { node: string }[] }>(
      nodes[0]!,
      `/cluster/locate/geohash/${middle}`,
    );
    const cells = found.get(owners[0]!.node)!;
    if (cells.length < each) cells.push(middle);
  }
  return Array.from(
    { length: count },
    (_, i) => found.get(ids[i % ids.length]!)![Math.floor(i / ids.length)]!,
  );
}

/** The UTM pixels that contain a cell. */
export function extentOf(geocode: string) {
  const toUtm = createTransform('EPSG:4326', crsFromEpsg(SERIES_EPSG));
  const { west, south, east, north } = geohash.bounds(geocode);
  const corners = [west, (west + east) / 2, east].flatMap((lon) =>
    [south, north].map((lat) => toUtm(lon, lat)),
  );
  const [xs, ys] = [corners.map(([x]) => x), corners.map(([, y]) => y)];
  const round = (value: number) => Math.round(value / SERIES_PIXEL) * SERIES_PIXEL;
  const origin = { x: round(Math.min(...xs) - MARGIN), y: round(Math.max(...ys) + MARGIN) };
  const pixels = (metres: number) => Math.ceil((metres + MARGIN) / SERIES_PIXEL);
  return {
    origin,
    size: { width: pixels(Math.max(...xs) - origin.x), height: pixels(origin.y - Math.min(...ys)) },
  };
}
