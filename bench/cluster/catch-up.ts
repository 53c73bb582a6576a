/** The work of a checkpoint after few changes, and of a node that loads slots or is far behind: CPU time, longest turn, memory. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { ALL_SLOTS } from '../../src/dht/index.js';
import { Storage, type TileRecord } from '../../src/storage/index.js';
import { wholeRecords } from '../search/search-data.js';
import type { Tiles } from '../search/tile-rows.js';
import { type BenchResult, result } from '../support/bench.js';
import type { Place } from './servers.js';
import { openWriter, type Writer } from './writer.js';

/** Tiles of a commit, in as many slots as possible. */
const SCATTERED = 1000;
const INTERVAL_MS = 5;
/** A node adapts the number of slots that it loads together. */
const SLOTS_TOGETHER = 512;

export async function measureCatchUp(
  place: Place,
  tiles: Tiles,
  log: (line: string) => void,
): Promise<BenchResult[]> {
  const results: BenchResult[] = [];
  const measure = async (title: string, work: () => Promise<unknown>) => {
    const { cpuSeconds, mainSeconds, longestTurnMs, heapBytes } = await watched(work);
    const figures = [
      ['CPU time', 's', cpuSeconds],
      ['CPU time of the main thread', 's', mainSeconds],
      ['longest turn of the main thread, CPU time', 'ms', longestTurnMs],
      ['most heap, above that before', 'MB', heapBytes / 1e6],
    ] as const;
    for (const [name, unit, value] of figures) {
      log(`${title}: ${name}: ${value.toPrecision(3)} ${unit}`);
      results.push(result(`${title}: ${name}`, unit, value));
    }
  };

  // Without older entries, a node that is behind has to load the checkpoint.
  const writer = await openWriter(place, { keptEntries: 0 });
  await measure(`first checkpoint of ${tiles.name}`, () => writer.checkpoint());
  await commitScattered(writer, tiles, 1);
  await measure(`checkpoint after ${SCATTERED} scattered tiles`, () => writer.checkpoint());

  let reader = await openWriter(place, { name: 'reader' });
  await measure(`an empty folder loads ${tiles.name}`, () => loadAll(reader));
  await reader.close();
  await commitScattered(writer, tiles, 2);
  await writer.checkpoint();
  // A node opens its folder before it joins.
  const storage = await Storage.open(join(place.folder, 'reader'), { reserve: 0 });
  await measure(`a folder behind the log by ${SCATTERED} tiles loads ${tiles.name} again`, async () => {
    reader = await openWriter(place, { name: 'reader', storage });
    await loadAll(reader);
  });
  const { size } = reader.storage.index;
  if (`${size} tiles` !== tiles.name) throw new Error(`the folder has ${size} tiles`);
  await reader.close();
  await writer.close();
  return results;
}

async function loadAll({ replica }: Writer): Promise<void> {
  for (let first = 0; first < ALL_SLOTS.length; first += SLOTS_TOGETHER)
    await replica.loadSlots(ALL_SLOTS.slice(first, first + SLOTS_TOGETHER));
}

/** Commits new versions of tiles that are far apart. */
async function commitScattered({ claims }: Writer, tiles: Tiles, round: number): Promise<void> {
  const every = Math.floor((tiles.regions * tiles.cellsOfRegion * tiles.dates) / SCATTERED);
  const added: TileRecord[] = [];
  let nth = 0;
  for (const tile of wholeRecords(tiles))
    if (nth++ % every === 0 && added.length < SCATTERED)
      added.push({ ...tile, version: `${round}${tile.version.slice(1)}` });
  const claim = await claims.lockShared();
  await claim.commit(async () => ({ added }));
  await claim.release();
}

/** CPU time of work, in all and of the main thread, the most between two turns of the event loop, and the memory of JavaScript. */
async function watched(work: () => Promise<unknown>) {
  setFlagsFromString('--expose_gc');
  (runInNewContext('gc') as () => void)();
  const heapBefore = process.memoryUsage().heapUsed;
  const before = process.cpuUsage();
  const mainBefore = mainCpuMs();
  let longestTurnMs = 0;
  let heap = heapBefore;
  let last = mainBefore;
  // Between two calls a thread takes at most the interval, or one longer turn.
  const timer = setInterval(() => {
    longestTurnMs = Math.max(longestTurnMs, mainCpuMs() - last);
    heap = Math.max(heap, process.memoryUsage().heapUsed);
    last = mainCpuMs();
  }, INTERVAL_MS);
  await work();
  clearInterval(timer);
  const { user, system } = process.cpuUsage(before);
  return {
    cpuSeconds: (user + system) / 1e6,
    mainSeconds: (mainCpuMs() - mainBefore) / 1e3,
    longestTurnMs,
    heapBytes: heap - heapBefore,
  };
}

/** CPU time of the main thread, ms. Linux only. */
const mainCpuMs = () =>
  Number.parseInt(readFileSync(`/proc/self/task/${process.pid}/schedstat`, 'latin1'), 10) / 1e6;
