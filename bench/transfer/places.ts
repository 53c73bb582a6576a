/** Places to train on: land with planted textures, and real scenes. */
import { existsSync, mkdirSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { REGIONS, SERIES_EPSG, SERIES_PIXEL, writeSentinelLikeSeries } from '../../data-samples/index.js';
import type { Client } from '../../src/client/index.js';
import { geohash } from '../../src/grid/index.js';
import { encodeCog } from '../../src/raster/index.js';
import { DATES, extentOf, LAND } from '../training/regions.js';
import { LAND_KINDS, plantedBands } from './planted-land.js';

const PRECISION = 5;
/** Precision of the cells by which places are chosen. Each place lies in a different one. */
const APART = 4;
const BANDS = ['blue', 'green', 'red', 'nir', 'swir16'];

/** Ingests `each` places of every kind of land, no two of them near each other, and returns the kind of each place. */
export async function plantPlaces(
  client: Client,
  collection: string,
  each: number,
  folder: string,
): Promise<Map<string, string>> {
  mkdirSync(folder, { recursive: true });
  const names = Object.keys(LAND_KINDS);
  const kinds = new Map<string, string>();
  for (const cell of geohash.cover(LAND, APART)) {
    if (kinds.size === each * names.length) break;
    const { west, south, east, north } = geohash.bounds(cell);
    const geocode = geohash.encode((west + east) / 2, (south + north) / 2, PRECISION);
    const kind = names[kinds.size % names.length]!;
    const { origin, size } = extentOf(geocode);
    const path = join(folder, `${geocode}.tif`);
    const file = encodeCog({
      ...size,
      dataType: 'uint16',
      bands: plantedBands(LAND_KINDS[kind]!, size, kinds.size + 1),
      transform: {
        originX: origin.x,
        originY: origin.y,
        pixelWidth: SERIES_PIXEL,
        pixelHeight: SERIES_PIXEL,
      },
      epsg: SERIES_EPSG,
      nodata: 0,
      bandTags: BANDS.map((description) => ({ description })),
      overviews: 'nearest',
    });
    await writeFile(path, file);
    await client.run('ingest', {
      ...{ href: path, collection, precision: PRECISION, scale: 0.0001 },
      datetime: '2024-06-01T10:00:00Z',
    });
    kinds.set(geocode, kind);
  }
  return kinds;
}

/** Ingests `each` places of every region with the dates of `bench -- training`, half of them cloudy. Returns the region of each place. */
export async function datedPlaces(
  client: Client,
  collection: string,
  each: number,
  folder: string,
): Promise<Map<string, string>> {
  const names = Object.keys(REGIONS) as (keyof typeof REGIONS)[];
  const kinds = new Map<string, string>();
  for (const cell of geohash.cover(LAND, APART).slice(0, each * names.length)) {
    const { west, south, east, north } = geohash.bounds(cell);
    const geocode = geohash.encode((west + east) / 2, (south + north) / 2, PRECISION);
    const region = names[kinds.size % names.length]!;
    const files = await writeSentinelLikeSeries(folder, {
      ...{ name: geocode, dates: DATES, seed: 1000 * (kinds.size + 1), swir16: true },
      ...{ region: REGIONS[region], ...extentOf(geocode) },
    });
    const href = files.map(({ path }) => path);
    await client.run('ingest', { href, collection, precision: PRECISION, scale: 0.0001, maskBand: 5 });
    kinds.set(geocode, region);
  }
  return kinds;
}

const DATA = fileURLToPath(new URL('../../../../shared/data/', import.meta.url));
const ETM = { blue: 1, green: 2, red: 3, nir: 4, swir16: 5, swir22: 6 };
/** Real scenes, by their collections, and how they are ingested. */
const REAL_SCENES: Record<string, object> = {
  'landsat8-cloudy': { href: join(DATA, 'landsat8-cloudy') },
  'landsat7-olinda': {
    ...{ href: join(DATA, 'landsat7-olinda/L7_ETMs.tif'), bands: ETM, scale: 0.00392 },
    datetime: '1999-08-01T00:00:00Z',
  },
};
/** Seven dates of ten years, as 8-bit counts, which have no texture. */
const REAL_SERIES = {
  'naip-north-dakota': { href: join(DATA, 'naip-north-dakota-series'), precision: 6 },
};

/** Ingests the real scenes and perhaps the series, and returns their collections; empty if the scenes are missing. */
export async function ingestReal(client: Client, { withSeries = false } = {}): Promise<string[]> {
  if (!existsSync(DATA)) return [];
  const collections: Record<string, object> = { ...REAL_SCENES, ...(withSeries && REAL_SERIES) };
  for (const [collection, scene] of Object.entries(collections))
    await client.run('ingest', { precision: PRECISION, ...scene, collection });
  return Object.keys(collections);
}
