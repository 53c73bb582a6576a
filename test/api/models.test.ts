/** Versions of models over HTTP: lists, cards, Items, files, ONNX, and their deletion. */
import assert from 'node:assert/strict';
import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { inProcessTransport } from '../../src/cli/connection.js';
import { Client } from '../../src/client/index.js';
import { openNode } from '../../src/node.js';
import { type TileRecord, versionsOf } from '../../src/storage/index.js';
import { exportOnnx } from '../../src/training/index.js';
import { atEnd } from '../support/at-end.js';
import { putModel } from '../support/models.js';
import { ingest, testNode, tilesOf } from '../support/node.js';
import { writeTestScene } from '../support/scenes.js';
import { storageProblems } from '../support/storage-problems.js';
import { tempFolder } from '../support/temp.js';

const DESCRIPTION = { collection: 'test', scale: 0.0001, maskBand: 5, precision: 5 };

test('models are listed in pages of any size', async (t) => {
  const node = await testNode(t, await tempFolder(t));
  const tile = { collection: 'c', grid: 'geohash', id: 't', version: 'v', start: 0, end: 0 };
  for (const geocode of ['u26x0', 'u26x1', 'u26xb', 'u26xc', 'u26xd'])
    await putModel(node.storage, [{ ...tile, geocode } as TileRecord]);
  const get = async (url: string) => (await node.server.inject(url)).json();
  const idsOf = ({ models }: { models: { id: string }[] }) => models.map(({ id }) => id);
  const ids = idsOf(await get('/models?limit=100'));
  assert.equal(ids.length, 5);
  for (const limit of [1, 2, 4, 5, 6]) {
    const paged: string[] = [];
    for (let url: string | undefined = `/models?limit=${limit}`; url; ) {
      const page = await get(url);
      assert.ok(page.models.length <= limit);
      paged.push(...idsOf(page));
      const next = page.links.find(({ rel }: { rel: string }) => rel === 'next')?.href;
      url = next?.slice(next.indexOf('/models'));
    }
    assert.deepEqual(paged, ids.toSorted());
  }
  assert.deepEqual(idsOf(await new Client(inProcessTransport(node)).models()), ids);
  assert.equal((await get('/models?token=../x')).code, 'TW_API_TOKEN');
});

test('the versions of a model, and "latest" and "best" as names of versions', async (t) => {
  const folder = await tempFolder(t);
  const node = await testNode(t, join(folder, 'data'));
  for (const [i, datetime] of ['2024-06-01T10:00:00Z', '2024-06-11T10:00:00Z'].entries()) {
    const href = await writeTestScene(join(folder, `s${i}.tif`), { seed: i + 1 });
    await ingest(node, { href, id: `s${i}`, datetime, ...DESCRIPTION });
  }
  const [tile] = await tilesOf(node);
  const dates = (await tilesOf(node)).filter(({ geocode }) => geocode === tile!.geocode);
  const best = await putModel(node.storage, dates, { seed: 1, mse: 0.01 });
  const latest = await putModel(node.storage, dates, { seed: 2, mse: 0.02, parent: best.id });
  const { id } = latest;
  const get = async (url: string) => (await node.server.inject(url)).json();
  const bytes = async (url: string) => (await node.server.inject(url)).rawPayload;
  const standing = { latest: latest.version, best: best.version };

  const { models } = await get('/models');
  assert.deepEqual(
    models.map(({ id, version, versions, latest, best }: Record<string, unknown>) => ({
      id,
      version,
      versions,
      latest,
      best,
    })),
    [{ id, version: latest.version, versions: 2, ...standing }],
  );
  const list = await get(`/models/${id}/versions`);
  assert.deepEqual({ latest: list.latest, best: list.best }, standing);
  assert.deepEqual(
    list.versions.map(({ version, metrics, parent, createdAt }: never) => [
      version,
      metrics['validation']['mse'],
      parent,
      createdAt,
    ]),
    versionsOf(latest).map(({ version, createdAt }, i) => [
      version,
      i ? 0.01 : 0.02,
      i ? null : best.id,
      new Date(createdAt).toISOString(),
    ]),
  );

  for (const [path, one] of [
    [`/models/${id}`, latest],
    [`/models/${id}/versions/latest`, latest],
    [`/models/${id}/versions/best`, best],
    [`/models/${id}/versions/${best.version}`, best],
  ] as const) {
    const document = await get(path);
    assert.deepEqual(
      [document.id, document.version, document.latest, document.best, document.versions],
      [id, one.version, standing.latest, standing.best, 2],
      path,
    );
    const files = ['model.json', 'weights.bin', 'card.json'];
    const [json, weights, card] = await Promise.all(files.map((name) => bytes(`${path}/${name}`)));
    assert.deepEqual(JSON.parse(String(card)), document.card);
    // The catalogue does not contain data that grows with the epochs.
    const { losses, ...summary } = document.card;
    assert.equal(losses.length, 1);
    assert.deepEqual(summary, one.card);
    assert.deepEqual(
      [json!.length, weights!.length],
      one.files.slice(0, 2).map((file) => file.bytes),
    );
    const onnx = await node.server.inject(`${path}/model.onnx`);
    assert.equal(onnx.headers['content-type'], 'application/octet-stream');
    assert.equal(onnx.headers['etag'], `"${one.version}"`);
    for (const name of [...files, 'model.onnx']) {
      const headers = { 'if-none-match': `"${one.version}"` };
      const known = await node.server.inject({ url: `${path}/${name}`, headers });
      assert.deepEqual([known.statusCode, known.rawPayload.length], [304, 0], name);
      const isJson = name.endsWith('.json');
      assert.deepEqual(
        [known.headers.etag, known.headers.vary],
        isJson ? [`W/"${one.version}"`, 'accept-encoding'] : [`"${one.version}"`, undefined],
      );
    }
    assert.deepEqual(onnx.rawPayload, exportOnnx(json!, weights!, `${id}, version ${one.version}`));
    const item = await get(`${path}/item`);
    assert.equal(item.id, `${id}_${one.version}`);
    const linked = document.links.find(({ rel }: { rel: string }) => rel === 'item').href;
    assert.deepEqual((await get(new URL(linked).pathname)).properties, item.properties);
    for (const { href } of Object.values<{ href: string }>(item.assets))
      assert.equal((await node.server.inject(new URL(href).pathname)).statusCode, 200, href);
  }
  assert.notDeepEqual(
    await bytes(`/models/${id}/versions/best/weights.bin`),
    await bytes(`/models/${id}/weights.bin`),
  );

  const { links, properties } = await get(`/models/${id}/item`);
  const hrefs = (rel: string) =>
    links
      .filter((link: { rel: string }) => link.rel === rel)
      .map(({ href }: { href: string }) => new URL(href).pathname);
  assert.deepEqual(hrefs('predecessor-version'), [`/models/${id}/versions/${best.version}/item`]);
  assert.deepEqual(hrefs('successor-version'), []);
  assert.deepEqual(hrefs('derived_from'), [
    `/models/${id}/item`,
    ...dates.map((date) => `/collections/test/items/${date.id}`),
  ]);
  for (const href of hrefs('derived_from'))
    assert.equal((await node.server.inject(href)).statusCode, 200, href);
  assert.deepEqual(
    [properties.start_datetime, properties.end_datetime],
    ['2024-06-01T10:00:00.000Z', '2024-06-11T10:00:00.000Z'],
  );
  assert.equal(properties['mlm:pretrained_source'], best.id);
  assert.equal(properties['mlm:framework_version'], '4.22.0');
  assert.equal(
    properties['mlm:total_parameters'],
    latest.files.find(({ name }) => name === 'weights.bin')!.bytes / 4,
  );

  const remove = async (url: string) => {
    const { statusCode, headers, body } = await node.server.inject({ method: 'DELETE', url });
    return statusCode === 204 ? Number(headers['tilewright-deleted-versions']) : JSON.parse(body).code;
  };
  assert.equal(
    await remove(`/models/${id}/versions/best`),
    'TW_STORAGE_NO_MODEL_VERSION',
    'words name no version to delete',
  );
  assert.equal(await remove(`/models/${id}/versions/${latest.version}`), 1);
  assert.equal((await get(`/models/${id}`)).version, best.version);
  assert.equal((await get(`/models/${id}/versions/${latest.version}`)).code, 'TW_STORAGE_NO_MODEL_VERSION');
  assert.equal((await get(`/models/${id}/versions/none/model.onnx`)).code, 'TW_STORAGE_NO_MODEL_VERSION');
  const collection = await node.server.inject({ method: 'DELETE', url: '/collections/test' });
  assert.equal(collection.statusCode, 204);
  assert.equal(
    (await get(`/models/${id}/item`)).id,
    `${id}_${best.version}`,
    'models outlive their collection',
  );
  assert.equal(await remove(`/models/${id}`), 1);
  assert.equal(await remove(`/models/${id}`), 'TW_STORAGE_NO_MODEL');
  for (const path of ['', '/item', '/versions', '/card.json', '/model.onnx'])
    assert.equal((await get(`/models/${id}${path}`)).code, 'TW_STORAGE_NO_MODEL', path);
  assert.deepEqual(await storageProblems(node.storage), []);
});

test('the deletion of a model needs a write token', async (t) => {
  const data = await tempFolder(t);
  const guarded = await openNode({ data, memory: 256e6, cores: 1, token: 'right', readToken: 'reader' });
  atEnd(t, () => guarded.close());
  for (const url of ['/models/x', '/models/x/versions/y'])
    for (const [token, code] of [
      ['wrong', 'TW_API_UNAUTHORIZED'],
      ['reader', 'TW_API_INSUFFICIENT_SCOPE'],
      ['right', 'TW_STORAGE_NO_MODEL'],
    ]) {
      const headers = { authorization: `Bearer ${token}` };
      assert.equal((await guarded.server.inject({ method: 'DELETE', url, headers })).json().code, code);
    }
});

test('a model of places without a common cell belongs to the entire grid', async (t) => {
  const folder = await tempFolder(t);
  const node = await testNode(t, join(folder, 'data'));
  const href = await writeTestScene(join(folder, 's.tif'));
  await ingest(node, { href, datetime: '2024-06-01T10:00:00Z', ...DESCRIPTION });
  const { id } = await putModel(node.storage, await tilesOf(node), { geocode: 'world' });
  assert.equal(id, 'ndvi_test_gworld');
  const item = (await node.server.inject(`/models/${id}/versions/latest/item`)).json();
  assert.deepEqual(item.bbox, [-180, -90, 180, 90]);
  assert.equal(item.properties['grid:code'], undefined);
  assert.equal((await node.server.inject(`/models/${id}/card.json`)).statusCode, 200);
});

test('a damaged file of a model is not sent; the error names it', async (t) => {
  const folder = await tempFolder(t);
  const node = await testNode(t, join(folder, 'data'));
  const href = await writeTestScene(join(folder, 's.tif'));
  await ingest(node, { href, datetime: '2024-06-01T10:00:00Z', ...DESCRIPTION });
  const [tile] = await tilesOf(node);
  const model = await putModel(node.storage, [tile!]);
  const { id, version } = model;
  const sent = async (path: string, method: 'GET' | 'HEAD' = 'GET') =>
    node.server.inject({ method, url: `/models/${id}${path}` });
  const flipped = (bytes: Buffer) => bytes.with(bytes.length >> 1, bytes[bytes.length >> 1]! ^ 1);
  const users: Record<string, string[]> = {
    'card.json': ['', '/card.json'],
    'model.json': ['/model.json', '/model.onnx'],
    'weights.bin': ['/weights.bin', '/model.onnx'],
  };
  for (const [name, paths] of Object.entries(users)) {
    const path = node.storage.models.path(model, name);
    const whole = await readFile(path);
    const length = String(whole.length);
    assert.deepEqual([(await sent(`/${name}`)).headers['content-length'], length], [length, length]);
    assert.equal((await sent(`/${name}`, 'HEAD')).headers['content-length'], length);
    const damages: [() => Promise<void>, RegExp][] = [
      [() => writeFile(path, flipped(whole)), /checksum/],
      [() => writeFile(path, whole.subarray(0, 20)), new RegExp(`20 bytes, but ${length}`)],
      [() => writeFile(path, ''), /0 bytes/],
      [() => rm(path), /missing/],
    ];
    for (const [damage, says] of damages) {
      await damage();
      for (const url of paths) {
        const answer = await sent(url);
        const { code, detail } = answer.json();
        assert.deepEqual([answer.statusCode, code], [500, 'TW_STORAGE_MODEL_DAMAGED'], url);
        for (const word of [`${name} of model ${id}, version ${version}`, 'tilewright verify'])
          assert.ok(detail.includes(word), detail);
        assert.match(detail, says);
      }
    }
    await writeFile(path, whole);
    for (const url of paths) assert.equal((await sent(url)).statusCode, 200, url);
  }
});

test('names of Object.prototype are not versions', async (t) => {
  const folder = await tempFolder(t);
  const node = await testNode(t, join(folder, 'data'));
  const href = await writeTestScene(join(folder, 's.tif'));
  await ingest(node, { href, datetime: '2024-06-01T10:00:00Z', ...DESCRIPTION });
  const { id } = await putModel(node.storage, await tilesOf(node), { geocode: 'world' });
  for (const name of ['constructor', '__proto__', 'toString', 'hasOwnProperty'])
    for (const path of ['', '/item', '/card.json', '/model.onnx']) {
      const answer = await node.server.inject(`/models/${id}/versions/${name}${path}`);
      assert.deepEqual(
        [answer.statusCode, answer.json().code],
        [404, 'TW_STORAGE_NO_MODEL_VERSION'],
        name + path,
      );
    }
});
