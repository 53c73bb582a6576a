import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { LevelStore } from '../../src/coordination/index.js';
import { listLocks } from '../../src/dht/log/fenced-lock.js';
import { CommitLog } from '../../src/dht/log/log.js';
import { entriesSince } from '../dht/commit-log/commit-log-contract.js';
import { runAndKill } from '../storage/kill-writer.js';
import { tempFolder } from '../support/temp.js';

const CHILD = fileURLToPath(new URL('commit-child.js', import.meta.url));

test('a kill at any moment loses no acknowledged commit, and leaves no gap and no held lock', async (t) => {
  const folder = join(await tempFolder(t), 'coordination');
  let head = 0;
  for (let kills = 0; kills < 8; kills++) {
    const acknowledged = await runAndKill(CHILD, ['claimed', 'acknowledged'], folder, head + 1);
    const store = await LevelStore.open(folder);
    const entries = await entriesSince(new CommitLog(store), 0);
    const held = (await listLocks(store, 'c/')).filter(({ done }) => done === undefined);
    await store.close();
    head = entries.length;
    assert.ok(head >= acknowledged, 'what was acknowledged is there');
    assert.ok(head <= acknowledged + 1, 'at most the one that was under way is more');
    assert.deepEqual(
      entries.map(({ seq, segment }) => [seq, segment]),
      entries.map((_, i) => [i + 1, `${i + 1}`]),
    );
    assert.deepEqual(held, []);
  }
});
