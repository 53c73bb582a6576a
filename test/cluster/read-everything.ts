/** Reads everything in a recovered cluster, from every node and from the store. */

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { crc32 } from 'node:zlib';
import { mapConcurrent } from '../../src/async/index.js';
import { burst } from './burst.js';
import { sameJobs, type Violation } from './checkers.js';
import { askJson, COLLECTION, findAll } from './client.js';
import type { TestNode } from './cluster.js';
import { DERIVED_COLLECTION, PREDICT, SPLIT, sumsOf, TRAIN } from './derived-scenes.js';
import type { Derived } from './history.js';
import { readJobs, runJob, stackAll } from './jobs.js';
import type { FoundTile } from './observe.js';
import { WHOLE } from './scene-deliveries.js';
import { readAll, readTile, type Setting } from './workload.js';

/** Small pages, so that a listing has several. */
const PAGE = 17;
/** Time limit of a job over all tiles, ms. */
const JOB_TIMEOUT_MS = 60_000;
/** How long the nodes may take to agree on the jobs, ms. */
const AGREE_TIMEOUT_MS = 30_000;
/** Files that are fetched at the same time. */
const CONCURRENCY = 8;

/** Reads everything into the history, twice; returns the faults of the store. `trains`: a training and a prediction must succeed, too. */
export async function readEverything(setting: Setting, trains = false): Promise<Violation[]> {
  const { cluster, deliveries } = setting;
  const violations: Violation[] = [];
  for (const [i, node] of cluster.nodes.entries()) {
    const found = await readAll(setting, node);
    await readAll(setting, node, PAGE);
    if (!found) violations.push({ rule: 'healed', detail: `${node.name} does not answer`, events: [] });
    await count(setting, node);
    const files = (found?.tiles ?? []).flatMap((tile) =>
      deliveries.groups().map((group) => ({ tile, group })),
    );
    await mapConcurrent(files, CONCURRENCY, ({ tile, group }) => readTile(setting, node, tile, group, true));
    if (i === 0)
      for (const tile of found?.tiles ?? []) violations.push(...(await problemsInStore(setting, tile)));
  }
  await burst(cluster, cluster.nodes.at(-1)!, true);
  violations.push(...(await deriveAll(setting)));
  if (trains) violations.push(...(await trainAndPredict(setting)));
  const limit = AbortSignal.timeout(Math.ceil(JOB_TIMEOUT_MS * cluster.slowness));
  const job = await stackAll(setting, cluster.nodes.at(-1)!, limit);
  const found = await readAll(setting, cluster.nodes[0]!);
  const ids = (all: string[]) => all.toSorted().join();
  if (!job || !found || job.outcome !== 'done' || ids(job.tiles) !== ids(found.tiles.map(({ id }) => id)))
    violations.push({
      rule: 'exact results',
      detail: `a job over all tiles has ${job?.tiles.length} of ${found?.tiles.length}: ${job?.why}`,
      events: job ? [job] : [],
    });
  return [...violations, ...(await jobsAlike(setting))];
}

/** Compares what the nodes answer about jobs, until they agree or the time is over. */
async function jobsAlike({ cluster }: Setting): Promise<Violation[]> {
  const end = performance.now() + AGREE_TIMEOUT_MS * cluster.slowness;
  for (;;) {
    const violations = sameJobs(await readJobs(cluster));
    if (violations.length === 0 || performance.now() > end) return violations;
    await sleep(1000);
  }
}

/** Another derivation, and the derived tiles that each node then shows. */
async function deriveAll(setting: Setting): Promise<Violation[]> {
  const { cluster, history, layers } = setting;
  const limit = AbortSignal.timeout(Math.ceil(JOB_TIMEOUT_MS * cluster.slowness));
  const ended = await runJob(setting, cluster.nodes[0]!, SPLIT, limit);
  if (ended?.outcome !== 'done')
    return [{ rule: 'fresh derivations', detail: `the last derivation failed: ${ended?.why}`, events: [] }];
  for (const { name, url } of cluster.nodes) {
    const invoked = history.now();
    const of = async (source: string) =>
      (await findAll(url, { collection: DERIVED_COLLECTION, source })).tiles;
    const raw = await of('raw');
    const split = await of('split');
    const scenes: Derived['scenes'] = {};
    for (const scene of layers.scenes) {
      const files = await sumsOf(
        url,
        split.filter((tile) => tile.scene === scene),
      );
      const delivery = raw.find((tile) => tile.scene === scene)?.delivery ?? 'absent';
      scenes[scene] = { delivery, files: Object.fromEntries(files) };
    }
    history.add<Derived>({ kind: 'derived', node: name, invoked, ended: history.now(), scenes });
  }
  return [];
}

async function trainAndPredict(setting: Setting): Promise<Violation[]> {
  const limit = AbortSignal.timeout(Math.ceil(2 * JOB_TIMEOUT_MS * setting.cluster.slowness));
  for (const job of [TRAIN, PREDICT]) {
    const ended = await runJob(setting, setting.cluster.nodes[0]!, job, limit);
    if (ended?.outcome !== 'done')
      return [{ rule: 'healed', detail: `the last job of ${job.process} failed: ${ended?.why}`, events: [] }];
  }
  return [];
}

async function count({ history }: Setting, { name, url }: TestNode): Promise<void> {
  const invoked = history.now();
  const total = `/aggregate?aggregations=total_count&collections=${COLLECTION}`;
  const { aggregations } = await askJson<{ aggregations: { value: number }[] }>(url, total);
  const list = `/collections/${COLLECTION}/scenes?limit=1000`;
  const { scenes } = await askJson<{ scenes: { id: string; tiles: number }[] }>(url, list);
  history.add({
    kind: 'count',
    node: name,
    invoked,
    ended: history.now(),
    tiles: aggregations[0]!.value,
    scenes: Object.fromEntries(scenes.map(({ id, tiles }) => [id, tiles])),
  });
}

/** Compares the file of a tile in the store with that of its delivery. */
async function problemsInStore({ cluster, deliveries }: Setting, tile: FoundTile): Promise<Violation[]> {
  const { id, version, delivery } = tile;
  const geocode = id.slice(id.lastIndexOf('_') + 2);
  const [group] = deliveries.groups();
  const name = join('tiles/geohash', geocode.slice(0, 3), geocode, `${id}.${version}`, `${group}.tif`);
  const bytes = await readFile(join(cluster.store, name)).catch((error: Error) => error);
  if (!(bytes instanceof Error) && crc32(bytes) === deliveries.sumOf(id, WHOLE, delivery)) return [];
  const detail = `${name} in the store: ${bytes instanceof Error ? bytes.message : 'other bytes'}`;
  return [{ rule: 'right bytes', detail, events: [] }];
}
