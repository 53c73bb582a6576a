/** Jobs over tiles with damaged files report the damage in their state, their results and the exit code of the command. */
import assert from 'node:assert/strict';
import { readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import fc from 'fast-check';
import { openNode, type TilewrightNode } from '../../src/node.js';
import { redactDataFolder } from '../../src/storage/index.js';
import { tilewright } from '../support/command.js';
import { ingest } from '../support/node.js';
import { writeTestScene } from '../support/scenes.js';
import { tempFolder } from '../support/temp.js';

async function ended(node: TilewrightNode, process: string, inputs: object) {
  const headers = { authorization: `Bearer ${node.ownerSecret}` };
  const url = `/processes/${process}/execution`;
  const answer = await node.server.inject({ method: 'POST', url, headers, payload: { inputs } });
  const { jobID } = answer.json();
  for (;;) {
    const job = (await node.server.inject(`/jobs/${jobID}`)).json();
    if (!['accepted', 'running'].includes(job.status)) return job;
    await sleep(20);
  }
}

/** Replaces all files of the band groups of the tiles of a scene. */
async function damage(data: string, scene: string): Promise<void> {
  const files = await readdir(join(data, 'tiles'), { recursive: true });
  const hit = files.filter((file) => file.includes(`_${scene}_`) && file.endsWith('.tif'));
  assert.ok(hit.length > 0);
  for (const file of hit) await writeFile(join(data, 'tiles', file), 'no raster');
}

test('fill, train and verify of damaged tiles', async (t) => {
  const folder = await tempFolder(t);
  const data = join(folder, 'data');
  const node = await openNode({ data, memory: 256e6, cores: 2 });
  const options = { scale: 0.0001, maskBand: 5 };
  for (const collection of ['one', 'two'])
    for (const [i, edge] of [0, 150].entries()) {
      const href = await writeTestScene(join(folder, `s${i}.tif`), { seed: i + 1, edge });
      const when = { id: `${collection}${i}`, datetime: `2024-06-0${i + 1}T10:00:00Z` };
      await ingest(node, { href, collection, precision: collection === 'one' ? 6 : 5, ...when, ...options });
    }
  for (const scene of ['one0', 'one1', 'two0', 'two1']) await damage(data, scene);

  const fill = await ended(node, 'fill', { filter: { collections: ['one'] } });
  assert.deepEqual([fill.status, fill.error.code], ['failed', 'TW_WRANGLE_ALL_FAILED']);
  assert.ok(fill.results.failures > 0 && fill.results.failed.length === fill.results.failures);
  const train = await ended(node, 'train', { model: 'ndvi', filter: { collections: ['two'] }, epochs: 1 });
  assert.deepEqual([train.status, train.error.code], ['failed', 'TW_TRAIN_NOTHING']);
  assert.equal(train.results.failed.length, 2, JSON.stringify(train));
  assert.match(train.error.message, /of 2 places: 2 places \(such as \w+\): [^;]*$/);
  const verify = await ended(node, 'verify', {});
  assert.equal(verify.status, 'successful');
  assert.match(verify.message, /^\d+ problems: parts of the data are damaged$/);

  for (const { jobID } of [fill, train, verify]) {
    const log = await node.server.inject(`/jobs/${jobID}/logs`);
    assert.ok(
      log.json().lines.some(({ level }: { level: string }) => level === 'error'),
      log.body,
    );
    for (const what of ['', '/logs', '/results', '/events?after=0']) {
      const { body } = await node.server.inject(`/jobs/${jobID}${what}`);
      assert.ok(!body.includes(data), body);
    }
  }
  assert.ok(!(await node.server.inject('/jobs')).body.includes(data));
  await node.close();

  const target = ['--data', data];
  const checked = await tilewright('verify', ...target);
  assert.deepEqual([checked.code, /\d+ problems/.test(checked.stdout)], [1, true]);
  const trained = await tilewright('train', 'ndvi', '--collection', 'two', '--epochs', '1', ...target);
  assert.equal(trained.code, 1);
  assert.match(trained.stderr, /error: no model was trained, of 2 places: 2 places \(such as \w+\): /);
  assert.equal(trained.stdout, '', 'the reasons are told once');
  const filled = await tilewright('fill', '--collection', 'one', ...target);
  assert.deepEqual([filled.code, /TW_WRANGLE_ALL_FAILED/.test(filled.stderr)], [1, true]);
});

test('a command that has nothing to do gives the reason and succeeds', async (t) => {
  const folder = await tempFolder(t);
  const target = ['--data', join(folder, 'data')];
  const node = await openNode({ data: join(folder, 'data'), memory: 256e6, cores: 2 });
  const href = await writeTestScene(join(folder, 's.tif'), { cloud: 30 });
  const options = { scale: 0.0001, maskBand: 5, precision: 6, datetime: '2024-06-01T10:00:00Z' };
  for (const collection of ['one', 'two']) await ingest(node, { href, collection, ...options });
  await node.close();
  const alone = await tilewright('fill', '--collection', 'one', '--max-coverage', '1', ...target);
  assert.equal(alone.code, 2, 'no such flag');
  const lonely = await tilewright('fill', '--collection', 'one', '--min-cloud', '1', ...target);
  assert.equal(lonely.code, 0, lonely.stderr);
  assert.match(lonely.stderr, /^nothing to do: \d+ tiles?, no other date within the window$/m);
  const coarse = await tilewright('split', '--precision', '5', ...target);
  assert.equal(coarse.code, 0, coarse.stderr);
  assert.match(coarse.stderr, /^nothing to do: \d+ tiles, its cell is not coarser than precision 5$/m);
  const nowhere = await tilewright(
    'coalesce',
    '--to',
    'one',
    '--collection',
    'two',
    '--max-cloud',
    '0',
    '--min-cloud',
    '1',
    ...target,
  );
  assert.deepEqual([nowhere.code, /^nothing to do: /m.test(nowhere.stderr)], [0, true], nowhere.stderr);
  const whole = await tilewright('fill', '--to-coverage', '0', '--to-cloud', '100', ...target);
  assert.deepEqual(
    [whole.code, /nothing to do: \d+ tiles, both limits are already met/.test(whole.stderr)],
    [0, true],
  );
  const none = await tilewright('train', 'ndvi', '--collection', 'absent', ...target);
  assert.equal(none.code, 2);
  assert.match(
    none.stderr,
    /^error: there is no collection absent; there are one, two \[TW_QUERY_NO_COLLECTION\]$/m,
  );
  const nothing = await tilewright('train', 'ndvi', '--geocode', 's0', ...target);
  assert.equal(nothing.code, 1);
  assert.match(
    nothing.stderr,
    /no tile matches the filter .*\n--recurse includes the cells inside a geocode\.$/m,
  );

  const found = async (...flags: string[]) => {
    const { stdout, stderr, code } = await tilewright(
      'search',
      '--format',
      'json',
      '--limit',
      '1000',
      ...flags,
      ...target,
    );
    assert.equal(code, 0, stderr);
    return JSON.parse(stdout).features as { collection: string; geometry: object; id: string }[];
  };
  const both = await found('--collection', 'one,two');
  assert.deepEqual([...new Set(both.map(({ collection }) => collection))].sort(), ['one', 'two']);
  assert.equal((await found('--collection', 'one', '--collection', 'two')).length, both.length);
  const [{ geometry, id }] = both as [(typeof both)[0]];
  const ids = (await found('--intersects', JSON.stringify(geometry), '--collection', 'one,two')).map(
    (one) => one.id,
  );
  assert.ok(ids.includes(id) && ids.length < both.length);
  const file = join(folder, 'place.geojson');
  await writeFile(file, JSON.stringify({ type: 'Feature', properties: {}, geometry }));
  assert.deepEqual(
    (await found('--intersects', file, '--collection', 'one,two')).map((one) => one.id),
    ids,
  );
  const broken = await tilewright('search', '--intersects', join(folder, 'absent.json'), ...target);
  assert.deepEqual([broken.code, /must be GeoJSON/.test(broken.stderr)], [2, true]);
});

test('only paths in the data folder are redacted', () => {
  const relative = redactDataFolder('/srv/data');
  assert.deepEqual(relative({ a: ['/srv/data/tiles/x.tif is gone', 3], b: null }), {
    a: ['tiles/x.tif is gone', 3],
    b: null,
  });
  for (const kept of ['/srv/data/scenes/a.tif', '/srv/database/tiles/a', '/srv/data'])
    assert.equal(relative(kept), kept);
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      assert.deepEqual(relative(value), JSON.parse(JSON.stringify(value)));
    }),
    { seed: 42 },
  );
});
