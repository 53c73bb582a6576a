/**
 * `kill -9` at many moments of an ingest with the real command: after a restart, every acknowledged scene is complete, and no
 * part of an unfinished one is visible.
 */
import assert from 'node:assert/strict';
import type { ChildProcess } from 'node:child_process';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { openNode } from '../../src/node.js';
import type { VerifyReport } from '../../src/storage/index.js';
import { finished, start, tilewright } from '../support/command.js';
import { runJob } from '../support/run-job.js';
import { SCENE_FLAGS, writeTestScene } from '../support/scenes.js';
import { tempFolder } from '../support/temp.js';

const KILLS = 10;

interface Found {
  numberMatched: number;
  features: { id: string; properties: { version: string } }[];
}

test('a killed ingest leaves the old state or the new one', async (t) => {
  const folder = await tempFolder(t);
  const data = join(folder, 'data');
  const size = { width: 500, height: 450 };
  const versions = await Promise.all(
    [1, 2].map((seed) => writeTestScene(join(folder, `v${seed}.tif`), { ...size, seed, cloud: 10 * seed })),
  );
  const ingest = (path: string, id: string) => [
    'ingest',
    path,
    '--id',
    id,
    '--datetime',
    '2024-06-01T10:00:00Z',
    '--data',
    data,
    '--cores',
    '1',
    '--format',
    'json',
    ...SCENE_FLAGS,
  ];

  const first = await tilewright(...ingest(versions[0], 'kept'));
  assert.equal(first.code, 0, first.stderr);
  const whole = JSON.parse(first.stdout).tiles;
  assert.ok(whole > 20);

  /** Opens the data folder again, and returns its tiles and the problems of its files. */
  const restart = async (): Promise<Found & { report: VerifyReport }> => {
    const node = await openNode({ data, memory: 256e6, cores: 1 });
    try {
      const found: Found = (await node.server.inject('/search?limit=10000')).json();
      return { ...found, report: (await runJob<VerifyReport>(node, 'verify', {})).results };
    } finally {
      await node.close();
    }
  };
  const acknowledged = new Map([['kept', whole]]);
  let cutOff = 0;
  for (let n = 0; n < KILLS; n++) {
    // In turn a new scene, and a new delivery of the one that is there.
    const id = n % 2 === 0 ? `new${n}` : 'kept';
    const files = await countFiles(data);
    const child = start(ingest(versions[(n >> 1) % 2 === 0 ? 1 : 0], id));
    const end = finished(child);
    await filesWritten(child, data, files + Math.ceil((whole * n) / (KILLS - 1)));
    child.kill('SIGKILL');
    const { code, stdout } = await end;
    if (code === 0) acknowledged.set(id, JSON.parse(stdout).tiles);
    else cutOff++;

    const { features, report } = await restart();
    const tilesOf = (scene: string) => features.filter((item) => item.id.startsWith(`test_${scene}_`));
    for (const [scene, tiles] of acknowledged)
      assert.equal(tilesOf(scene).length, tiles, `${scene} after kill ${n}`);
    if (!acknowledged.has(id))
      assert.ok([0, whole].includes(tilesOf(id).length), `no half of ${id} after kill ${n}`);
    if (tilesOf(id).length === whole) acknowledged.set(id, whole);
    assert.equal(new Set(tilesOf('kept').map((item) => item.properties.version)).size, 1, 'one delivery');

    assert.ok(report.tiles >= features.length);
    assert.deepEqual([report.problems, report.orphans], [[], []], `after kill ${n}`);
  }
  assert.ok(cutOff >= KILLS / 2, `${cutOff} of ${KILLS} kills met an ingest under way`);
});

/** From the moment before the first file to that of the last, when the commit comes next. */
async function filesWritten(child: ChildProcess, data: string, wanted: number): Promise<void> {
  while (child.exitCode === null && (await countFiles(data)) < wanted) await sleep(15);
}

async function countFiles(data: string): Promise<number> {
  const names = await readdir(join(data, 'tiles'), { recursive: true }).catch(() => []);
  return names.filter((name) => name.endsWith('.tif')).length;
}
