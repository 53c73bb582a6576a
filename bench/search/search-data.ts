/** The data folder of the search benchmark: whole records of made-up tiles, as an ingest of Sentinel-2 L2A commits them, without files. */
import { existsSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { cellBbox, geohash } from '../../src/grid/index.js';
import { DataFolder } from '../../src/storage/data-folder.js';
import {
  type CollectionRecord,
  type GroupRecord,
  Storage,
  type TileRecord,
} from '../../src/storage/index.js';
import { BENCH_FOLDER } from '../support/scene.js';
import { FIRST_DAY, records, type Tiles } from './tile-rows.js';

/** Changes with the records, so that folders with older records are not reused. */
export const EDITION = 2;
const BATCH = 5_000;

export const COLLECTION: CollectionRecord = {
  id: 'sentinel-2-l2a',
  title: 'Sentinel-2 Level-2A',
  license: 'proprietary',
  licenseUrl: 'https://sentinel.esa.int/documents/247904/690755/Sentinel_Data_Legal_Notice',
  attribution: 'Contains modified Copernicus Sentinel data [year]',
  grid: 'geohash',
  precision: 5,
  createdAt: FIRST_DAY,
};

/** 20,000 cells in 250 regions, at so many dates that there are `rows` tiles or some more. */
export function tilesOf(rows: number): Tiles {
  const dates = Math.ceil(rows / 20_000);
  return { name: `${dates * 20_000} tiles`, regions: 250, cellsOfRegion: 80, dates, daysBetween: 10 };
}

/** Yields the records date by date. No two tiles have the same time, so the order of the newest tiles is unique. */
export function* wholeRecords(tiles: Tiles): Generator<TileRecord> {
  let nth = 0;
  for (const record of records(tiles)) {
    const start = record.start + (nth++ % tiles.cellsOfRegion);
    yield {
      ...record,
      version: `0${start.toString(36).padStart(8, '0')}aaaaaa`,
      start,
      end: start,
      groups: groupsOf(record),
      footprint: footprintOf(record),
    };
  }
}

/** The folder with these tiles, which is created once and kept. */
export async function searchFolder(tiles: Tiles, log: (line: string) => void): Promise<string> {
  const folder = join(BENCH_FOLDER, `search-${EDITION}-${tiles.dates}`);
  if (existsSync(folder)) return folder;
  log(`making ${folder}`);
  const begun = `${folder}.part`;
  rmSync(begun, { recursive: true, force: true });
  await writeRecords(begun, tiles);
  // The index is made from the records, and written as a snapshot at the end.
  await (await Storage.open(begun, { reserve: 0 })).close();
  renameSync(begun, folder);
  return folder;
}

async function writeRecords(folder: string, tiles: Tiles): Promise<void> {
  const data = await DataFolder.open(folder);
  const { catalogue } = data;
  try {
    await catalogue.write([catalogue.collections.set(COLLECTION.id, COLLECTION)]);
    let batch: TileRecord[] = [];
    const flush = async () => {
      await catalogue.write(batch.map((record) => catalogue.tiles.set(record.id, record)));
      batch = [];
    };
    for (const record of wholeRecords(tiles)) {
      batch.push(record);
      if (batch.length === BATCH) await flush();
    }
    await flush();
  } finally {
    await data.close();
  }
}

const DATA = { role: 'data', dataType: 'uint16', nodata: 0 } as const;
const CODES = { dataType: 'uint8', nodata: 0 } as const;
const REFLECTANCE = { scale: 0.0001, offset: -0.1 };
const PLAIN = { scale: 1, offset: 0 };

type Band = [name: string, commonName?: string];
const GROUPS: {
  group: Omit<GroupRecord, 'width' | 'height' | 'bands' | 'bytes' | 'crc32'>;
  pixel: number;
  bands: Band[];
}[] = [
  {
    group: { name: '10m', file: '10m', ...DATA },
    pixel: 10,
    bands: [
      ['B02', 'blue'],
      ['B03', 'green'],
      ['B04', 'red'],
      ['B08', 'nir'],
    ],
  },
  {
    group: { name: '20m', file: '20m', ...DATA },
    pixel: 20,
    bands: [
      ['B05', 'rededge071'],
      ['B06', 'rededge075'],
      ['B07', 'rededge078'],
      ['B8A', 'nir08'],
      ['B11', 'swir16'],
      ['B12', 'swir22'],
    ],
  },
  { group: { name: '20m-qa', file: '20m', role: 'qa', ...CODES }, pixel: 20, bands: [['SCL']] },
  {
    group: { name: '60m', file: '60m', ...DATA },
    pixel: 60,
    bands: [
      ['B01', 'coastal'],
      ['B09', 'nir09'],
    ],
  },
  { group: { name: 'mask', file: '10m', role: 'mask', ...CODES }, pixel: 10, bands: [['mask']] },
];

function groupsOf({ start, coverage }: TileRecord): GroupRecord[] {
  return GROUPS.map(({ group, pixel, bands }, i) => ({
    ...group,
    width: Math.round(3480 / pixel),
    height: Math.round(4860 / pixel),
    bands: bands.map(([name, commonName]) => ({
      name,
      ...(commonName !== undefined && { commonName }),
      ...(group.role === 'data' ? REFLECTANCE : PLAIN),
      validPercent: coverage,
    })),
    bytes: Math.round(8.5e7 / pixel ** 2),
    crc32: (start * (i + 1)) % 2 ** 32,
  }));
}

/** The cell, or the part of it west of a slanting edge. */
function footprintOf({ geocode, coverage }: TileRecord): [number, number][] {
  const [west, south, east, north] = cellBbox(geohash, geocode);
  const right = (share: number) => west + (east - west) * Math.min(1, share);
  const slant = coverage === 100 ? 0 : 0.1;
  return [
    [west, north],
    [west, south],
    [right(coverage / 100), south],
    [right(coverage / 100 + slant), north],
    [west, north],
  ];
}
