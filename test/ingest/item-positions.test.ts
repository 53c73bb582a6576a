/** Items that say where their rasters are. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { chooseAssets, itemPositions } from '../../src/ingest/items.js';
import { itemOf } from '../../src/remote/index.js';
import { ingest, testNode } from '../support/node.js';
import { remoteCatalog, SIDE } from '../support/remote-catalog.js';
import { tempFolder } from '../support/temp.js';

const PIXEL = 10;
const DATA = { 'proj:shape': [SIDE, SIDE], 'proj:transform': [PIXEL, 0, 500_000, 0, -PIXEL, 5_300_000] };
const MASK = {
  'proj:shape': [SIDE / 2, SIDE / 2],
  'proj:transform': [2 * PIXEL, 0, 500_000, 0, -2 * PIXEL, 5_300_000, 0, 0, 1],
};

interface TestItem {
  bbox: number[];
  geometry: object;
  properties: Record<string, unknown>;
  assets: Record<string, object>;
}

/** An Item whose footprint is larger than its rasters. `more`: members of the properties, and of the assets by key. */
async function setUp(t: TestContext, properties: object, assets: Record<string, object> = {}) {
  const catalog = await remoteCatalog(t);
  const [item] = catalog.items as unknown as [TestItem];
  item.bbox = [14, 47, 16, 48];
  item.geometry = {
    type: 'Polygon',
    coordinates: [
      [
        [14, 47],
        [16, 47],
        [16, 48],
        [14, 48],
        [14, 47],
      ],
    ],
  };
  Object.assign(item.properties, properties);
  for (const [key, more] of Object.entries(assets)) Object.assign(item.assets[key]!, more);
  const hosts = { hosts: [catalog.server.host], anyPublic: false };
  const node = await testNode(t, join(await tempFolder(t), 'data'), { hosts });
  const run = async (bbox: number[], more: object = {}) => {
    catalog.server.requests.length = 0;
    const results = await ingest(node, { stac: { url: catalog.api }, bbox, ...more });
    const files = catalog.server.requests.filter(({ path }) => path.endsWith('.tif')).length;
    return { ...results, files };
  };
  return { ...catalog, item, run };
}

const BESIDE = [15.3, 47.75, 15.4, 47.8];
const WITHIN = [15.03, 47.75, 15.12, 47.8];

test('an Item whose rasters lie beside the region is left out without a request for its files', async (t) => {
  const { run } = await setUp(t, { 'proj:epsg': 32633 }, { red: DATA, nir: DATA, scl: MASK });
  const left = await run(BESIDE, { precision: 5 });
  assert.deepEqual([left.scenes, left.failed, left.files], [[], [], 0]);
  assert.match(left.skipped![0]!.reason, /no valid pixel in the region/);
  const read = await run(WITHIN, { precision: 5 });
  assert.equal(read.scenes.length, 1);
  assert.ok(read.files > 0);
  assert.equal((await run(BESIDE)).files, 0, 'the collection has the precision');
});

test('an Item that says too little is opened', async (t) => {
  const { run, item } = await setUp(t, { 'proj:code': 'EPSG:32633', ...DATA });
  assert.equal((await run(BESIDE)).files, 3, 'the precision is unknown');
  assert.equal((await run(BESIDE, { precision: 5 })).files, 0, 'the properties describe all assets');
  for (const wrong of [
    { 'proj:code': 'EPSG:999999' },
    { 'proj:code': null },
    { 'proj:shape': [SIDE] },
    { 'proj:shape': [SIDE, 1e300] },
    { 'proj:transform': [PIXEL, 0, 500_000, 0, -PIXEL] },
    { 'proj:transform': [0, 0, 500_000, 0, 0, 5_300_000] },
    { 'proj:transform': ['10', 0, 500_000, 0, -PIXEL, 5_300_000] },
  ]) {
    const properties = { 'proj:code': 'EPSG:32633', ...DATA, ...wrong };
    const found = itemOf({ ...item, id: 'a', properties });
    assert.equal(itemPositions(found, chooseAssets(found)), undefined, JSON.stringify(wrong));
  }
});

test('the shape and the transform come from the same place', async (t) => {
  // The shape of the mask with the transform of the properties would be a quarter of the scene.
  const { item } = await setUp(t, { 'proj:epsg': 32633, ...DATA }, { scl: { 'proj:shape': [700, 700] } });
  const found = itemOf({ ...item, id: 'a' });
  assert.equal(itemPositions(found, chooseAssets(found)), undefined);
});
