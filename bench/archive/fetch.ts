/** Fetches the pixels of a region with the parts of ingest, and then decodes them, as peers do. Prints `FetchCost` as JSON. */
import { setMaxListeners } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Bbox } from '../../src/grid/index.js';
import { coverScene, sourceWindowForCell } from '../../src/ingest/cells.js';
import { planFetch } from '../../src/ingest/fetch.js';
import { describeScenes } from '../../src/ingest/formats/registry.js';
import { planSceneTiles } from '../../src/ingest/plan.js';
import { RemoteScenes } from '../../src/ingest/remote-scenes.js';
import { openNode } from '../../src/node.js';
import { readWindow, type Window } from '../../src/raster/index.js';
import { spend } from '../support/bench.js';
import { ASSET_NAMES, COLLECTION } from './item-files.js';
import { PRECISION } from './region.js';

/** Seconds of the search, of all until the pixels are here, and CPU seconds of the latter. Imports do not count. */
export interface FetchCost {
  searchSeconds: number;
  wallSeconds: number;
  cpuSeconds: number;
  megapixels: number;
}

export interface OwnFetchCost extends FetchCost {
  /** Fetched blocks are compressed. */
  decode: { wallSeconds: number; cpuSeconds: number };
  cells: number;
  /** Bytes of the blocks that the cells need. */
  neededBytes: number;
}

async function fetchRegion(api: string, host: string, bbox: Bbox): Promise<OwnFetchCost> {
  const data = mkdtempSync(join(tmpdir(), 'tilewright-bench-'));
  const node = await openNode({ data, memory: 1e9, cores: 1, reserve: 0 });
  const options = { bbox, precision: PRECISION };
  const source = { url: api, collections: [COLLECTION], assets: ASSET_NAMES };
  const { signal } = new AbortController();
  // As the worker pool does in a job: each request listens.
  setMaxListeners(0, signal);
  const job = { signal, message: () => undefined, log: () => undefined };
  const policy = { hosts: [host], anyPublic: false };
  const remote = await RemoteScenes.open(
    { policy },
    node.storage,
    source,
    options,
    job,
    join(data, 'scratch'),
  );
  try {
    let searchSeconds = 0;
    const fetched = await spend(async () => {
      const search = await spend(() => remote.search(() => undefined));
      searchSeconds = search.wallSeconds;
      const opened = await remote.openItem(await search.value[0]!.read());
      const [scene] = await describeScenes(opened.input, {});
      const plan = await planSceneTiles(node.storage, scene!, options);
      const cells = coverScene(plan.scene, plan.grid, PRECISION, bbox);
      return { plan: await remote.fetch(opened, plan, cells, () => undefined), cells };
    });
    const { plan, cells } = fetched.value;
    const decoded = await spend(async () => {
      let pixels = 0;
      for (const group of plan.scene.groups) {
        const window = unionOf(cells.map((cell) => sourceWindowForCell(group, plan.grid, cell)));
        for (const { header, index } of group.bands)
          pixels += (await readWindow(header, [index], window))[0]!.length;
      }
      return pixels;
    });
    const needed = [...planFetch(plan, cells, new Map()).needed.values()].map(
      ({ header: { blocks }, blocks: used }) =>
        'byteCounts' in blocks ? [...used].reduce((sum, i) => sum + blocks.byteCounts[i]!, 0) : 0,
    );
    const { wallSeconds, cpuSeconds } = fetched;
    return {
      ...{ searchSeconds, wallSeconds, cpuSeconds, cells: cells.length },
      megapixels: decoded.value / 1e6,
      decode: { wallSeconds: decoded.wallSeconds, cpuSeconds: decoded.cpuSeconds },
      neededBytes: needed.reduce((sum, bytes) => sum + bytes, 0),
    };
  } finally {
    await remote.close();
    await node.close();
    rmSync(data, { recursive: true });
  }
}

function unionOf(windows: Window[]): Window {
  const column = Math.min(...windows.map((window) => window.column));
  const row = Math.min(...windows.map((window) => window.row));
  const right = Math.max(...windows.map((window) => window.column + window.width));
  const bottom = Math.max(...windows.map((window) => window.row + window.height));
  return { column, row, width: right - column, height: bottom - row };
}

const [api, host, ...box] = process.argv.slice(2);
console.log(JSON.stringify(await fetchRegion(api!, host!, box.map(Number) as Bbox)));
