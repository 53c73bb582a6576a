/**
 * Files that a node fetches. Nodes do not send tile files to each other: each node fetches them from the object store and verifies them
 * with the checksums of their records.
 */
import { randomBytes } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import { mapConcurrent } from '../../src/async/index.js';
import { filesOf } from '../../src/storage/index.js';
import { tilesOf, wholeRecords } from '../search/search-data.js';
import { type BenchResult, median, result, spend } from '../support/bench.js';
import type { Writer } from './writer.js';

const IN_FLIGHT = 16;
const MARK = 300;
const FILE = 1 << 20;

export async function measureFiles({ storage, objects }: Writer, short: boolean): Promise<BenchResult[]> {
  const [like] = wholeRecords(tilesOf(1));
  const tiles = Array.from({ length: short ? 32 : 256 }, (_, i) => {
    const content = randomBytes(FILE);
    const groups = [{ ...like!.groups[0]!, bytes: FILE, crc32: crc32(content) }];
    return { tile: { ...like!, id: `fetched-${i}`, version: '000000fetched', groups }, content };
  });
  await mapConcurrent(tiles, IN_FLIGHT, ({ tile, content }) => objects.put(filesOf(tile)[0]!.path, content));
  const rates: number[] = [];
  const costs: number[] = [];
  for (let round = 0; round < (short ? 1 : 5); round++) {
    const { wallSeconds, cpuSeconds } = await spend(() =>
      mapConcurrent(tiles, IN_FLIGHT, ({ tile }) => storage.ensureFiles(tile, tile.groups)),
    );
    const megabytes = (tiles.length * FILE) / 1e6;
    rates.push(megabytes / wallSeconds);
    costs.push(megabytes / cpuSeconds);
    await rm(join(storage.dir, 'tiles'), { recursive: true });
  }
  const title = `files from the store, ${IN_FLIGHT} at once, CRC checked`;
  return [
    result(`${title}`, 'MB/s', median(rates), { mark: MARK }),
    result(`${title}: per CPU second`, 'MB/CPU s', median(costs)),
  ];
}
