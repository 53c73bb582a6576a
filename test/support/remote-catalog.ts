/** A small STAC API with Items of Sentinel-2 whose files are served by range requests. */
import { rmSync } from 'node:fs';
import { cp, mkdir, mkdtemp, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { randomStream } from '../../src/utils/random.js';
import { type RangeServer, rangeServer } from './range-server.js';
import { writeRaster } from './rasters.js';
import { tempFolder } from './temp.js';

export const SIDE = 1400;
export const COLLECTION = 'sentinel-2-l2a';

export interface RemoteCatalog {
  /** Address of the landing page. */
  api: string;
  server: RangeServer;
  /** Folder with a folder for each Item, which has its files and an Item that refers to them. */
  folder: string;
  items: Record<string, unknown>[];
}

export interface CatalogOptions {
  ids?: string[];
  /** Items of a page. */
  page?: number;
  conformsTo?: string[];
  /** Size of the pixels of red and nir, metres; default 10. */
  pixel?: number;
}

const PAGED = 'token';

/** Starts the server. Each Item has red, nir and scl of the same 1400 x 1400 pixels at another date, in EPSG:32633. */
export async function remoteCatalog(
  t: TestContext,
  { ids = ['a'], page = 10, conformsTo = [], pixel = 10 }: CatalogOptions = {},
): Promise<RemoteCatalog> {
  const folder = await tempFolder(t);
  const server = await rangeServer(t, folder);
  const items: Record<string, unknown>[] = [];
  for (const [i, id] of ids.entries()) {
    await cp(await productOf(i, pixel), join(folder, id), { recursive: true });
    items.push(describe(id, i, (file) => `${server.url}/${id}/${file}`));
    await writeFile(join(folder, id, 'item.json'), JSON.stringify(describe(id, i, (file) => `./${file}`)));
  }
  const api = `${server.url}/stac`;
  server.documents.set('/stac', {
    type: 'Catalog',
    stac_version: '1.0.0',
    id: 'test',
    conformsTo,
    links: [{ rel: 'search', method: 'POST', href: `${api}/search`, type: 'application/geo+json' }],
  });
  server.documents.set('/stac/search', ({ body }: { body: string }) => {
    const asked = JSON.parse(body) as Record<string, unknown>;
    const from = Number(asked[PAGED] ?? 0);
    const next = {
      rel: 'next',
      method: 'POST',
      href: `${api}/search`,
      body: { ...asked, [PAGED]: from + page },
    };
    return {
      type: 'FeatureCollection',
      numberMatched: items.length,
      features: items.slice(from, from + page),
      links: from + page < items.length ? [next] : [],
    };
  });
  return { api, server, folder, items };
}

/** Folders of the products that this process has made: all tests of a file have the same ones. */
const products = new Map<string, Promise<string>>();

function productOf(index: number, pixel: number): Promise<string> {
  const key = `${index} ${pixel}`;
  const made = products.get(key) ?? madeOnce(index, pixel);
  products.set(key, made);
  return made;
}

async function madeOnce(index: number, pixel: number): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'tilewright-products-'));
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
  await writeProduct(folder, index, pixel);
  return folder;
}

async function writeProduct(folder: string, index: number, pixel: number): Promise<void> {
  await mkdir(folder, { recursive: true });
  const random = randomStream(index + 1);
  const noisy = (side: number, base: number) =>
    Uint16Array.from({ length: side * side }, () => base + Math.floor(2000 * random.next()));
  for (const [name, base] of Object.entries({ red: 600, nir: 2500 }))
    await writeRaster(join(folder, `${name}.tif`), {
      width: SIDE,
      height: SIDE,
      bands: [noisy(SIDE, base)],
      pixel,
      nodata: 0,
    });
  const half = SIDE / 2;
  const classes = Uint8Array.from({ length: half * half }, (_, i) => (i % half < half / 4 ? 9 : 4));
  await writeRaster(join(folder, 'scl.tif'), {
    width: half,
    height: half,
    dataType: 'uint8',
    bands: [classes],
    pixel: 2 * pixel,
    nodata: 0,
  });
}

function describe(id: string, index: number, href: (file: string) => string): Record<string, unknown> {
  const asset = (name: string, more: object) => ({
    href: href(`${name}.tif`),
    type: 'image/tiff; application=geotiff; profile=cloud-optimized',
    roles: ['data'],
    ...more,
  });
  return {
    type: 'Feature',
    stac_version: '1.0.0',
    id,
    collection: COLLECTION,
    bbox: [15, 47.72, 15.19, 47.86],
    geometry: {
      type: 'Polygon',
      coordinates: [
        [
          [15, 47.72],
          [15.19, 47.72],
          [15.19, 47.86],
          [15, 47.86],
          [15, 47.72],
        ],
      ],
    },
    properties: {
      datetime: `2024-06-${String(index + 1).padStart(2, '0')}T10:00:00Z`,
      updated: '2024-07-01T00:00:00Z',
      platform: 'sentinel-2a',
      'eo:cloud_cover': 10 * index,
      's2:processing_baseline': '05.10',
      'earthsearch:boa_offset_applied': true,
    },
    assets: {
      red: asset('red', {
        'eo:bands': [{ name: 'red', common_name: 'red' }],
        'raster:bands': [{ scale: 0.0001, offset: -0.1 }],
      }),
      nir: asset('nir', {
        'eo:bands': [{ name: 'nir', common_name: 'nir' }],
        'raster:bands': [{ scale: 0.0001, offset: -0.1 }],
      }),
      scl: asset('scl', {}),
      'red-jp2': { href: href('red.jp2'), type: 'image/jp2', roles: ['data'] },
      thumbnail: { href: href('preview.jpg'), type: 'image/jpeg', roles: ['thumbnail'] },
    },
    links: [],
  };
}
