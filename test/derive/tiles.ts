/** Stores tiles of given pixels, like an ingest of an invented product, and reads them back. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { type GridName, gridByName } from '../../src/grid/index.js';
import { type CellGroup, encodeGroup, encodeMask, joinTile } from '../../src/ingest/index.js';
import { LocalJobService, type Process } from '../../src/jobs/index.js';
import { type DataType, Mask, type PixelArray, readImage } from '../../src/raster/index.js';
import { type Storage, type TileRecord, writeFileSynced } from '../../src/storage/index.js';

export interface GivenGroup {
  name?: string;
  role?: 'data' | 'qa';
  dataType?: DataType;
  nodata?: number | null;
  width: number;
  height: number;
  codes?: boolean;
  bands: { name: string; commonName?: string; scale?: number; offset?: number; pixels: PixelArray }[];
}

export interface GivenTile {
  collection?: string;
  grid?: GridName;
  geocode: string;
  groups: GivenGroup[];
  /** The mask has the size of the first group. */
  mask: Uint8Array;
}

export interface GivenScene {
  id: string;
  /** Days since 2024-06-01. */
  day: number;
  days?: number;
  platform?: string;
  /** Warnings of each of its tiles. */
  warnings?: string[];
  tiles: GivenTile[];
}

export const DAY = 86_400_000;
export const START = Date.UTC(2024, 5, 1, 10);

const percent = (pixels: ArrayLike<number>, hole: number | null) => {
  let valid = 0;
  for (let i = 0; i < pixels.length; i++) if (pixels[i] !== hole) valid++;
  return (100 * valid) / pixels.length;
};

/** Delivers a scene; `beforeCommit` runs after its files are stored and before its commit. */
export async function storeScene(
  storage: Storage,
  { id, day, days = 0, platform = 'made-up', warnings, tiles }: GivenScene,
  beforeCommit: () => Promise<void> = async () => {},
): Promise<TileRecord[]> {
  const [{ collection = 'test', grid = 'geohash', geocode: first }] = tiles;
  const precision = first.length;
  const facts = { start: START + day * DAY, end: START + (day + days) * DAY, platform };
  const write = await storage.beginScene(
    { id: collection, title: collection, grid, precision, license: 'CC-BY-4.0', attribution: 'Made [year]' },
    id,
    tiles.map(({ geocode }) => geocode),
  );
  const records: TileRecord[] = [];
  for (const { geocode, groups, mask } of tiles) {
    const folder = await write.stagingFolder(geocode);
    const coverages: number[] = [];
    const images = groups.map((group) => {
      const cell = cellOf(grid, geocode, group);
      const bands = group.bands.map(({ pixels }) => pixels);
      const entire = bands[0].map((_, i) =>
        bands.some((band) => band[i] === cell.nodata) ? 0 : 1,
      ) as Uint8Array;
      if (cell.role === 'data') coverages.push(percent(entire, 0));
      const valid = bands.map((band) => Uint8Array.from(band, (value) => Number(value !== cell.nodata)));
      return encodeGroup(cell, { bands, valid }).image;
    });
    const { image, shares: _, ...figures } = encodeMask(cellOf(grid, geocode, groups[0]), mask);
    const { files, groups: stored } = joinTile([...images, image]);
    for (const { name, bytes } of files) await writeFileSynced(join(folder, `${name}.tif`), bytes);
    records.push({
      id: write.tileId(geocode),
      collection,
      scene: id,
      grid,
      geocode,
      version: write.version,
      source: 'raw',
      ...facts,
      coverage: Math.min(...coverages),
      ...figures,
      groups: stored,
      derivedFrom: [],
      ...(warnings && { warnings }),
      createdAt: Date.now(),
    });
  }
  await write.publish(tiles.map(({ geocode }) => geocode));
  await beforeCommit();
  await write.commit({ fingerprint: id, warnings: [], ...facts }, records);
  return records;
}

function cellOf(grid: GridName, geocode: string, group: GivenGroup): CellGroup {
  const {
    name = '10m',
    role = 'data',
    dataType = 'uint16',
    nodata = 0,
    width,
    height,
    codes = false,
  } = group;
  return {
    grid,
    geocode,
    width,
    height,
    name,
    role,
    resampling: role === 'qa' || codes ? 'nearest' : 'bilinear',
    dataType,
    nodata,
    colours: undefined,
    bands: group.bands.map(({ name, commonName, scale = 1, offset = 0 }) => ({
      name,
      commonName,
      scale,
      offset,
    })),
    metadata: {},
  };
}

/** Runs a process as a job. Returns its results, or the code of its error. */
export async function runProcess<Results>(
  storage: Storage,
  process: Process,
  inputs: object,
): Promise<Results> {
  const jobs = await LocalJobService.open(storage, [process]);
  const { id } = await jobs.start(process, inputs);
  const job = await jobs.wait(id);
  if (job.status !== 'successful')
    throw Object.assign(new Error(job.error?.message), { code: job.error?.code });
  return job.results as Results;
}

export async function pixelsOf(storage: Storage, tile: TileRecord, group: string): Promise<PixelArray[]> {
  return (await readImage(storage.tileImage(tile, group))).bands;
}

export async function derivedTiles(storage: Storage, source: TileRecord['source']): Promise<TileRecord[]> {
  const tiles: TileRecord[] = [];
  for await (const tile of storage.catalogue.tiles.values()) if (tile.source === source) tiles.push(tile);
  return tiles;
}

/**
 * Compares the parts with data in each record with the pixels of the tile's mask: a part holds data if a pixel with data overlaps it.
 * Returns the number of tiles that lack data in some part, by source.
 */
export async function assertDataParts(storage: Storage): Promise<Record<string, number>> {
  const partial: Record<string, number> = {};
  for await (const tile of storage.catalogue.tiles.values()) {
    const { width, height } = tile.groups.find(({ role }) => role === 'mask')!;
    const [codes] = await pixelsOf(storage, tile, 'mask');
    const partsOf = (size: number) =>
      Array.from({ length: size }, (_, pixel) =>
        [0, 1, 2, 3, 4, 5, 6, 7].filter(
          (part) => 8 * pixel < (part + 1) * size && 8 * (pixel + 1) > part * size,
        ),
      );
    const [columns, rows] = [partsOf(width), partsOf(height)];
    const found = new Array<string>(64).fill('0');
    for (const [at, code] of codes!.entries())
      if (code !== Mask.nodata)
        for (const row of rows[Math.floor(at / width)]!)
          for (const column of columns[at % width]!) found[8 * row + column] = '1';
    const digits = found.join('');
    const expected = BigInt(`0b${digits}`).toString(16).padStart(16, '0');
    assert.equal(tile.dataParts, expected === 'ffffffffffffffff' ? undefined : expected, tile.id);
    if (tile.dataParts !== undefined) partial[tile.source] = (partial[tile.source] ?? 0) + 1;
  }
  return partial;
}

/** Numbers from 0 to 1, the same for the same seed. */
export function randomly(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 16807) % 2147483647;
    return state / 2147483647;
  };
}

export const boundsOf = (tile: TileRecord) => gridByName(tile.grid).bounds(tile.geocode);
