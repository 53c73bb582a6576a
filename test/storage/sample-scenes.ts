/** Scenes whose bytes all follow from a number, so that tests know what must be on disk. */
import { createHash } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { crc32 } from 'node:zlib';
import {
  type CollectionRecord,
  type DerivedWrite,
  type SceneRecord,
  type SceneWrite,
  type Storage,
  type TileRecord,
  writeFileSynced,
} from '../../src/storage/index.js';
import { atEnd } from '../support/at-end.js';

export const COLLECTION: Omit<CollectionRecord, 'createdAt'> = {
  id: 'sentinel-2-l2a',
  title: 'Sentinel-2 L2A',
  grid: 'geohash',
  precision: 5,
  license: 'proprietary',
};

const CELLS = ['9q8yy', '9q8yz', '9q8yv', '9q9p1', 'c2b2n', 'c2b2p', 'drt2z', 'u4pru'];
export const GROUPS = ['10m', 'mask'];

export async function tempFolder(t: TestContext): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), 'tilewright-storage-'));
  atEnd(t, () => rm(dir, { recursive: true, force: true }));
  return dir;
}

/** 1 to 8 cells for each number. */
export function cellsOf(n: number): string[] {
  const chosen = CELLS.filter((_, i) => (n * 37 + 11) & (1 << i));
  return chosen.length > 0 ? chosen : [CELLS[0]!];
}

export function bytesOf(n: number, geocode: string, group: string): Buffer {
  const digest = createHash('sha256').update(`${n} ${geocode} ${group}`).digest();
  return Buffer.concat(Array.from({ length: 1 + (n % 400) }, () => digest));
}

export function tileRecord(write: SceneWrite, n: number, geocode: string): TileRecord {
  return {
    id: write.tileId(geocode),
    collection: write.collection.id,
    scene: write.scene,
    grid: write.collection.grid,
    geocode,
    version: write.version,
    source: 'raw',
    start: n * 1000,
    end: n * 1000,
    platform: 'sentinel-2a',
    coverage: 100,
    cloudCover: n % 2 ? null : n % 101,
    groups: GROUPS.map((name) => ({
      name,
      file: name,
      role: name === 'mask' ? 'mask' : 'data',
      dataType: 'uint8',
      width: 32,
      height: 32,
      nodata: 0,
      bands: [{ name: 'B04', scale: 1, offset: 0, validPercent: 100 }],
      bytes: bytesOf(n, geocode, name).length,
      crc32: crc32(bytesOf(n, geocode, name)),
    })),
    footprint: [],
    derivedFrom: [],
    createdAt: n,
  };
}

export function factsOf(n: number) {
  return { fingerprint: `${n}`, start: n * 1000, end: n * 1000, platform: 'sentinel-2a', warnings: [] };
}

export async function stageTile(write: SceneWrite, n: number, geocode: string): Promise<void> {
  const folder = await write.stagingFolder(geocode);
  for (const group of GROUPS) await writeFileSynced(join(folder, `${group}.tif`), bytesOf(n, geocode, group));
}

/** Writes delivery `n` of a scene, and publishes its tiles in batches of three. `before` is called before each step. */
export async function writeScene(
  storage: Storage,
  scene: string,
  n: number,
  before: (step: string) => void = () => {},
): Promise<SceneRecord> {
  const cells = cellsOf(n);
  before('begin');
  const write = await storage.beginScene(COLLECTION, scene, [...cells, 'zzzzz']);
  for (let i = 0; i < cells.length; i += 3) {
    const batch = cells.slice(i, i + 3);
    for (const geocode of batch) await stageTile(write, n, geocode);
    before('publish');
    await write.publish(batch);
  }
  before('commit');
  return write.commit(
    factsOf(n),
    cells.map((geocode) => tileRecord(write, n, geocode)),
  );
}

/** The derived tiles of batch `n`: they replace those of earlier batches, and have the cells of scene 0. */
export function derivedIds(n: number): string[] {
  return cellsOf(n).map((geocode) => `${COLLECTION.id}_scene-0_g${geocode}_filled-${n % 3}`);
}

/** Writes batch `n`, which requires scene-0; the last cell in a separate commit, made by `commit`. */
export async function writeDerived(
  storage: Storage,
  n: number,
  before: (step: string) => void = () => {},
  commit: (write: DerivedWrite, tiles: TileRecord[]) => Promise<unknown> = (write, tiles) =>
    write.commit(tiles),
): Promise<void> {
  const cells = cellsOf(n);
  const ids = derivedIds(n);
  before('plan');
  const write = await storage.beginDerived();
  const tiles = cells.map((geocode, i) => ({ id: ids[i]!, grid: COLLECTION.grid, geocode }));
  await write.plan([...tiles, { ...tiles[0]!, id: `${tiles[0]!.id}0` }]);
  const records: TileRecord[] = [];
  for (const { id, geocode } of tiles) {
    const folder = await write.stagingFolder(id);
    for (const group of GROUPS)
      await writeFileSynced(join(folder, `${group}.tif`), bytesOf(n, geocode, group));
    const like = { version: write.version, collection: COLLECTION, scene: 'scene-0', tileId: () => id };
    records.push({
      ...tileRecord(like as unknown as SceneWrite, n, geocode),
      source: 'filled',
      derivedFrom: [`${n}`],
      inputsDigest: `${n}`,
    });
  }
  before('commit');
  await commit(write, records.slice(0, -1));
  before('commit');
  await commit(write, records.slice(-1));
  before('close');
  await write.close();
}
