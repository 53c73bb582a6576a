/** Scenes taken in by three nodes over a shared folder, and by one node with as many workers. */

import { writeFile } from 'node:fs/promises';
import { encodeCog } from '../../src/raster/index.js';
import { type BenchResult, median, result } from '../bench.js';
import { treeCpuSeconds } from '../measure-tree.js';
import { sceneFile } from '../scene.js';
import { ask, eventually, type Server } from './servers.js';

const SCENES = 6;
const MARK = 0.8;

interface Side {
  servers: Server[];
  /** Its own, with all that they start. */
  pids: number[];
  /** Those of etcd among them. */
  etcd: number[];
}

/** Both sides in turn, until all scenes are acknowledged. */
export async function measureIngests(
  cluster: Side,
  single: Side,
  { short, log }: { short: boolean; log: (line: string) => void },
): Promise<BenchResult[]> {
  const path = sceneFile(short ? 600 : 3000, log);
  const sides = [cluster, single];
  const walls: number[][] = [[], []];
  const cpus: number[][] = [[], []];
  const etcds: number[] = [];
  // The first scene starts the workers.
  for (const side of sides) await ingest(side.servers, path, 'warm', side.servers.length);
  for (let round = 0; round < (short ? 1 : 5); round++)
    for (const [i, { servers, pids, etcd }] of sides.entries()) {
      const cpu = treeCpuSeconds(pids);
      const etcdCpu = treeCpuSeconds(etcd);
      const begun = performance.now();
      await ingest(servers, path, `round-${round}`, SCENES);
      walls[i]!.push((performance.now() - begun) / 1e3);
      cpus[i]!.push(treeCpuSeconds(pids) - cpu);
      if (i === 0) etcds.push(treeCpuSeconds(etcd) - etcdCpu);
    }
  const [ours, theirs] = walls.map(median) as [number, number];
  const [ourCpu, theirCpu] = cpus.map(median) as [number, number];
  const title = `ingest of ${SCENES} scenes, 3 nodes of 1 worker`;
  const peer = 'one node of 3 workers';
  return [
    result(title, 'scenes/s', SCENES / ours, { [peer]: SCENES / theirs, mark: (MARK * SCENES) / theirs }),
    result(`${title}: CPU of all servers`, 's a scene', ourCpu / SCENES, { [peer]: theirCpu / SCENES }),
    result(`${title}: CPU of etcd in it`, 's a scene', median(etcds) / SCENES),
  ];
}

async function ingest(servers: Server[], href: string, name: string, scenes: number): Promise<void> {
  const jobs = await Promise.all(
    Array.from({ length: scenes }, (_, i) =>
      startIngest(servers[i % servers.length]!, { href, id: `${name}-${i}`, day: 1 + i }),
    ),
  );
  for (const done of jobs) await done();
}

/** Resolves to what waits for the end of the job. */
export async function startIngest(
  server: Server,
  { href, id, day }: { href: string; id: string; day: number },
): Promise<() => Promise<void>> {
  const when = `2024-06-${String(day).padStart(2, '0')}T10:00:00Z`;
  const inputs = { href, id, datetime: when, collection: 'bench', scale: 0.0001 };
  const { jobID } = await ask<{ jobID: string }>(server, '/ingest', inputs);
  return async () => {
    await eventually(
      `${id} is taken in`,
      async () => {
        const { status } = await ask<{ status: string }>(server, `/jobs/${jobID}`);
        if (status === 'failed') throw new Error(`the ingest of ${href} has failed`);
        return status === 'successful';
      },
      { every: 100 },
    );
  };
}

/** A scene of a few tiles, whose ingest shows how long a write takes. */
export async function smallScene(path: string): Promise<string> {
  const side = 200;
  const band = Uint16Array.from({ length: side * side }, (_, i) => 1000 + (i % 977));
  const file = encodeCog({
    ...{ width: side, height: side, dataType: 'uint16', bands: [band], epsg: 32633, nodata: 0 },
    transform: { originX: 499_980, originY: 5_000_040, pixelWidth: 10, pixelHeight: 10 },
    overviews: 'mean',
  });
  await writeFile(path, file);
  return path;
}
