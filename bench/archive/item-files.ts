/** An Item as of Sentinel-2 L2A in Earth Search: four Cloud Optimized GeoTIFFs, made by GDAL, which are kept between runs. */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Bbox } from '../../src/grid/index.js';
import { createTransform, crsFromEpsg } from '../../src/raster/index.js';
import { type BandSpec, BENCH_FOLDER, bandFile } from '../support/scene.js';

export const COLLECTION = 'sentinel-2-l2a';
export const ITEM_ID = 'S2B_33TWK_20240601_0_L2A';
const EPSG = 32633;
/** North-western corner of `bandFile`. */
const [ORIGIN_X, ORIGIN_Y] = [499_980, 5_000_040];

interface AssetSpec {
  pixel: number;
  kind: BandSpec['kind'];
  /** Side of the blocks of the GeoTIFF. */
  block: number;
  /** Arguments of gdal_translate, so that bands of the same pixel size differ. */
  scale?: string[];
}

const ASSETS: Record<string, AssetSpec> = {
  red: { pixel: 10, kind: 'band', block: 1024 },
  nir: { pixel: 10, kind: 'band', block: 1024, scale: ['-scale', '0', '12000', '0', '21600'] },
  swir16: { pixel: 20, kind: 'band', block: 512 },
  scl: { pixel: 20, kind: 'classes', block: 512 },
};
export const ASSET_NAMES = Object.keys(ASSETS);

export interface ItemFiles {
  /** Has the files and `item.json`, whose addresses are relative. */
  folder: string;
  /** Pixels of 10 m a side. */
  side: number;
}

/** `side` is a multiple of 2. */
export function itemFiles(side: number, log: (line: string) => void): ItemFiles {
  const folder = join(BENCH_FOLDER, `archive-1-${side}`);
  if (existsSync(folder)) return { folder, side };
  log(`making an Item of ${side} x ${side} pixels in ${folder}`);
  const part = `${folder}.part`;
  rmSync(part, { recursive: true, force: true });
  mkdirSync(part, { recursive: true });
  for (const [name, { pixel, kind, block, scale = [] }] of Object.entries(ASSETS)) {
    const source = bandFile({ side: (side * 10) / pixel, pixel, kind }, log);
    const options = ['COMPRESS=DEFLATE', 'PREDICTOR=YES', `BLOCKSIZE=${block}`].flatMap((o) => ['-co', o]);
    const target = join(part, `${name}.tif`);
    const { status, stderr } = spawnSync(
      'gdal_translate',
      ['-q', '-of', 'COG', ...options, ...scale, source, target],
      {
        encoding: 'utf8',
      },
    );
    if (status !== 0) throw new Error(`gdal_translate failed: ${stderr}`);
  }
  writeFileSync(join(part, 'item.json'), JSON.stringify(describeItem(side, (file) => `./${file}`)));
  renameSync(part, folder);
  return { folder, side };
}

/** Corners of the scene in degrees, from the north-west clockwise. */
function corners(side: number): [lon: number, lat: number][] {
  const toLonLat = createTransform(crsFromEpsg(EPSG), crsFromEpsg(4326));
  const [east, south] = [ORIGIN_X + side * 10, ORIGIN_Y - side * 10];
  return (
    [
      [ORIGIN_X, ORIGIN_Y],
      [east, ORIGIN_Y],
      [east, south],
      [ORIGIN_X, south],
    ] as const
  ).map(([x, y]) => toLonLat(x, y) as [number, number]);
}

/** A point of the scene in degrees: from 0 to 1 eastwards and southwards. */
export function pointOf(side: number, right: number, down: number): [lon: number, lat: number] {
  const toLonLat = createTransform(crsFromEpsg(EPSG), crsFromEpsg(4326));
  return toLonLat(ORIGIN_X + right * side * 10, ORIGIN_Y - down * side * 10) as [number, number];
}

/** The Item with the properties that clients read: eo, projection and raster extensions. */
export function describeItem(side: number, href: (file: string) => string): Record<string, unknown> {
  const ring = corners(side);
  const [xs, ys] = [ring.map(([lon]) => lon), ring.map(([, lat]) => lat)];
  const bbox: Bbox = [Math.min(...xs), Math.min(...ys), Math.max(...xs), Math.max(...ys)];
  const extension = (name: string, version: string) =>
    `https://stac-extensions.github.io/${name}/v${version}/schema.json`;
  return {
    type: 'Feature',
    stac_version: '1.0.0',
    stac_extensions: [
      extension('eo', '1.1.0'),
      extension('projection', '1.1.0'),
      extension('raster', '1.1.0'),
    ],
    id: ITEM_ID,
    collection: COLLECTION,
    bbox,
    geometry: { type: 'Polygon', coordinates: [[...ring, ring[0]]] },
    properties: {
      datetime: '2024-06-01T10:10:00Z',
      updated: '2024-06-01T20:00:00Z',
      platform: 'sentinel-2b',
      constellation: 'sentinel-2',
      'proj:epsg': EPSG,
      'eo:cloud_cover': 12,
      's2:processing_baseline': '05.10',
      'earthsearch:boa_offset_applied': true,
    },
    assets: Object.fromEntries(
      Object.entries(ASSETS).map(([name, spec]) => [
        name,
        describeAsset(name, spec, side, href(`${name}.tif`)),
      ]),
    ),
    links: [],
  };
}

function describeAsset(name: string, { pixel, kind }: AssetSpec, side: number, href: string): object {
  const pixels = (side * 10) / pixel;
  const isBand = kind === 'band';
  return {
    href,
    type: 'image/tiff; application=geotiff; profile=cloud-optimized',
    roles: isBand ? ['data', 'reflectance'] : ['data'],
    gsd: pixel,
    ...(isBand && { 'eo:bands': [{ name, common_name: name }] }),
    'raster:bands': [
      {
        nodata: 0,
        data_type: isBand ? 'uint16' : 'uint8',
        spatial_resolution: pixel,
        ...(isBand && { scale: 0.0001, offset: 0 }),
      },
    ],
    'proj:shape': [pixels, pixels],
    'proj:transform': [pixel, 0, ORIGIN_X, 0, -pixel, ORIGIN_Y],
  };
}
