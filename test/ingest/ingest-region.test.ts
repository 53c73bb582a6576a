/** Regions of a scene that are ingested one after another. */
import assert from 'node:assert/strict';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { type Bbox, cellBbox, geohash } from '../../src/grid/index.js';
import { addRegion, isRegionKnown, regionFilter } from '../../src/ingest/cells.js';
import type { TilewrightNode } from '../../src/node.js';
import { verify } from '../../src/storage/index.js';
import { ingest, testNode, tilesOf } from '../support/node.js';
import { writeTestScene } from '../support/scenes.js';
import { tempFolder } from '../support/temp.js';

const AT = { collection: 'test', datetime: '2024-06-01T10:00:00Z', scale: 0.0001, maskBand: 5, precision: 6 };

/** Everything of the tiles that does not depend on when they were made. */
async function contents(node: TilewrightNode) {
  const tiles = await tilesOf(node);
  return tiles
    .map(({ geocode, coverage, cloudCover, footprint, groups }) => ({
      ...{ geocode, coverage, cloudCover, footprint },
      files: groups.map(({ name, bytes, crc32 }) => `${name} ${bytes} ${crc32}`),
    }))
    .sort((a, b) => (a.geocode < b.geocode ? -1 : 1));
}

/** The whole scene in one node, and another node for its regions. */
async function wholeScene(t: Parameters<typeof tempFolder>[0]) {
  const folder = await tempFolder(t);
  const href = await writeTestScene(join(folder, 'scene.tif'), { width: 500, height: 500 });
  const whole = await testNode(t, join(folder, 'whole'));
  await ingest(whole, { href, id: 'a', ...AT });
  const expected = await contents(whole);
  const boxes = expected.map(({ geocode }) => cellBbox(geohash, geocode));
  const edge = (side: number, pick: (...edges: number[]) => number) =>
    pick(...boxes.map((box) => box[side]!));
  const box: Bbox = [edge(0, Math.min), edge(1, Math.min), edge(2, Math.max), edge(3, Math.max)];
  return { folder, href, expected, box, node: await testNode(t, join(folder, 'regions')) };
}

/** A part of a box between fractions of its width. */
const slice = ([west, south, east, north]: Bbox, from: number, to: number): Bbox => [
  west + from * (east - west),
  south,
  west + to * (east - west),
  north,
];

test('regions add cells, and together equal the whole scene', async (t) => {
  const { href, node, expected, box } = await wholeScene(t);
  const add = (bbox?: Bbox) => ingest(node, { href, id: 'a', ...AT, ...(bbox && { bbox }) });
  const west = slice(box, 0.05, 0.35);
  const first = await add(west);
  const inWest = expected.filter(({ geocode }) => regionFilter(geohash, west)(geocode));
  assert.ok(inWest.length > 0 && inWest.length < expected.length);
  assert.equal(first.tiles, inWest.length);
  assert.deepEqual(await contents(node), inWest);

  const middle = await add(slice(box, 0.3, 0.6));
  assert.deepEqual([middle.scenes[0].unchanged, middle.scenes[0].replaced], [false, false]);
  const versions = new Set((await tilesOf(node)).map(({ version }) => version));
  assert.equal(versions.size, 2, 'the cells of both regions are made once');
  const again = await add(west);
  assert.deepEqual([again.scenes[0].unchanged, again.tiles], [true, first.tiles]);
  assert.equal((await add(slice(box, 0.1, 0.3))).scenes[0].unchanged, true, 'a part of a known region');

  const rest = await add();
  assert.deepEqual(
    [rest.tiles, rest.scenes[0].unchanged, rest.scenes[0].replaced],
    [expected.length, false, false],
  );
  assert.deepEqual(await contents(node), expected);
  assert.equal((await add()).scenes[0].unchanged, true);
  assert.equal((await add(slice(box, 0.2, 0.8))).scenes[0].unchanged, true);
  assert.deepEqual((await verify(node.storage)).problems, []);
  const scene = (await node.storage.getScene('test', 'a'))!;
  assert.deepEqual(scene.geocodes, expected.map(({ geocode }) => geocode).sort());
});

test('a changed scene replaces the tiles of the region, and keeps the others', async (t) => {
  const { folder, href, node, expected, box } = await wholeScene(t);
  await ingest(node, { href, id: 'a', ...AT });
  const changed = await writeTestScene(join(folder, 'changed.tif'), { width: 500, height: 500, seed: 77 });
  const west = slice(box, 0.05, 0.35);
  const isInWest = regionFilter(geohash, west);
  const { scenes } = await ingest(node, { href: changed, id: 'a', ...AT, bbox: west });
  assert.deepEqual([scenes[0].replaced, scenes[0].unchanged], [true, false]);
  const now = await contents(node);
  const isSame = now.map((tile) => JSON.stringify(expected).includes(JSON.stringify(tile)));
  assert.deepEqual(
    isSame,
    now.map(({ geocode }) => !isInWest(geocode)),
  );
  assert.deepEqual((await verify(node.storage)).problems, []);
  // The whole scene then replaces the tiles that are left.
  await ingest(node, { href: changed, id: 'a', ...AT });
  const all = await contents(node);
  assert.deepEqual(
    all.filter(({ geocode }) => isInWest(geocode)),
    now.filter(({ geocode }) => isInWest(geocode)),
  );
  assert.ok(all.every((tile) => !JSON.stringify(expected).includes(JSON.stringify(tile))));
  assert.deepEqual((await verify(node.storage)).problems, []);
});

test('deleted and damaged tiles of any region are made again', async (t) => {
  const { href, node, expected, box } = await wholeScene(t);
  const add = (bbox: Bbox) => ingest(node, { href, id: 'a', ...AT, bbox });
  const west = slice(box, 0, 0.45);
  await add(west);
  await add(slice(box, 0.45, 1));
  const [inWest] = (await tilesOf(node)).filter(({ geocode }) => regionFilter(geohash, west)(geocode));
  await node.storage.collections.deleteTile(inWest!.id);
  assert.equal((await tilesOf(node)).length, expected.length - 1);
  assert.deepEqual((await verify(node.storage)).problems, []);
  await add(west);
  const [damaged] = await tilesOf(node);
  await rm(node.storage.tileImage(damaged!, '10m').path);
  assert.equal((await verify(node.storage)).problems.length, 1);
  await add(box);
  assert.deepEqual(await contents(node), expected);
  assert.deepEqual((await verify(node.storage)).problems, []);
  assert.equal(await node.storage.collections.deleteScene('test', 'a'), expected.length);
  assert.deepEqual(await tilesOf(node), []);
  const { problems, orphanCount } = await verify(node.storage);
  assert.deepEqual([problems, orphanCount], [[], 0]);
});

test('a scene outside of the region is skipped, and a wrong box is refused', async (t) => {
  const { href, node } = await wholeScene(t);
  const far = await ingest(node, { href, id: 'a', ...AT, bbox: [100, 10, 101, 11] });
  assert.deepEqual([far.scenes, far.failed, far.skipped?.length], [[], [], 1]);
  assert.match(far.skipped![0]!.reason, /no valid pixel in the region/);
  await assert.rejects(ingest(node, { href, id: 'a', ...AT, bbox: [1, 2, 3, -4] }), /south above its north/);
});

test('regions across the antimeridian', () => {
  const across: Bbox = [179.5, -1, -179.5, 1];
  const contains = regionFilter(geohash, across);
  const at = (lon: number) => contains(geohash.encode(lon, 0.5, 5));
  assert.deepEqual([179.4, 179.6, -179.6, -179.4, 0].map(at), [false, true, true, false, false]);
  assert.equal(isRegionKnown([across], across), true);
  assert.equal(isRegionKnown([across], [179.6, 0, 179.9, 0.5]), true);
  assert.equal(isRegionKnown([[-10, -10, 10, 10]], across), false);
  assert.deepEqual(addRegion([[0, 0, 1, 1], across], [-1, -1, 2, 2]), [across, [-1, -1, 2, 2]]);
});

test('a region that ends at the edge of a cell does not select the next cell', () => {
  const box = cellBbox(geohash, 'u294p');
  const contains = regionFilter(geohash, box);
  const neighbours = [-1, 0, 1].flatMap((dx) =>
    [-1, 0, 1].map((dy) =>
      geohash.encode(
        (box[0] + box[2]) / 2 + dx * (box[2] - box[0]),
        (box[1] + box[3]) / 2 + dy * (box[3] - box[1]),
        5,
      ),
    ),
  );
  assert.deepEqual(neighbours.filter(contains), ['u294p']);
});
