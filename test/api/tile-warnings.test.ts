/** Warnings of jobs on the Items of the tiles that they make, compared with the logs, the results and the pixels. */
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { type GridBounds, geohash } from '../../src/grid/index.js';
import type { TilewrightNode } from '../../src/node.js';
import { Mask } from '../../src/raster/index.js';
import { type TileRecord, tileWarnings } from '../../src/storage/index.js';
import { type GivenTile, pixelsOf, randomly, storeScene } from '../derive/tiles.js';
import { writeCube } from '../hyperspectral/cubes.js';
import { tilewright } from '../support/command.js';
import { putModel } from '../support/models.js';
import { ingest, testNode, tilesOf } from '../support/node.js';
import { runJob } from '../support/run-job.js';
import { tempFolder } from '../support/temp.js';

const CELL = '9q8yyk';
/** The cell and the one east of it. */
const CELLS = [CELL, geohash.encode(...eastOf(geohash.bounds(CELL)), CELL.length)];
const SIDE = 64;

/** A tile of four bands with cloud, shadow, snow, pixels that were not assessed, and holes. */
function tileOf(geocode: string, seed: number, codes: number[]): GivenTile {
  const random = randomly(seed * 7919);
  const mask = Uint8Array.from({ length: SIDE * SIDE }, (_, i) =>
    i % SIDE < SIDE / 2 ? codes[Math.floor(random() * codes.length)]! : Mask.clear,
  );
  const bands = ['red', 'green', 'blue', 'nir'].map((name, b) => ({
    ...{ name, commonName: name, scale: 0.0001 },
    pixels: Uint16Array.from(mask, (code) => (code === 0 ? 0 : 400 * (b + 1) + Math.floor(random() * 300))),
  }));
  return { geocode, groups: [{ width: SIDE, height: SIDE, bands }], mask };
}

const LONG = `a long list of files: ${'B01.tif, '.repeat(100)}`;

async function nodeWithDates(t: TestContext, folder: string): Promise<TilewrightNode> {
  const node = await testNode(t, folder);
  const { clear, cloud, shadow, snow, nodata, notAssessed } = Mask;
  const dates = [
    {
      day: 0,
      platform: 'landsat-8',
      warnings: ['the offset is in doubt'],
      codes: [clear, cloud, shadow, nodata],
    },
    {
      day: 3,
      platform: 'landsat-7',
      warnings: ['no MTL file', LONG],
      codes: [clear, snow, cloud, nodata, cloud],
    },
    {
      day: 5,
      platform: 'landsat-8',
      warnings: ['the offset is in doubt', 'no MTL file'],
      codes: [notAssessed, notAssessed, nodata, cloud, snow],
    },
  ];
  for (const [i, { codes, warnings, ...date }] of dates.entries()) {
    const tiles = CELLS.map((cell, c) => tileOf(cell, 10 * i + c + 1, codes));
    await storeScene(node.storage, { id: `s${i}`, ...date, ...tileWarnings(warnings), tiles });
  }
  await storeScene(node.storage, {
    ...{ id: 'other', day: 0 },
    tiles: [{ ...tileOf('9q8yykb', 99, [clear]), collection: 'fine' }],
  });
  return node;
}

function eastOf({ west, east, south, north }: GridBounds): [number, number] {
  return [east + (east - west) / 2, (south + north) / 2];
}

interface Item {
  id: string;
  properties: { warnings?: string[]; source: string; pixels_of_other_dates?: number };
  links: { rel: string; href: string }[];
}

const itemOf = async ({ server }: TilewrightNode, { collection, id }: TileRecord) =>
  (await server.inject(`/collections/${collection}/items/${id}`)).json<Item>();

const isOfShares = (text: string) =>
  /^(less than )?[0-9.]+ % of the (pixels (are|were)|cell holds|assessed pixels are)/.test(text);

/** The shares of a tile's pixels that its files state. */
async function shares({ storage }: TilewrightNode, tile: TileRecord): Promise<string[]> {
  const [mask] = await pixelsOf(storage, tile, 'mask');
  const isFilled = tile.groups.some(({ name }) => name === 'provenance');
  const sources = isFilled ? await pixelsOf(storage, tile, 'provenance') : [];
  // A filled tile that was filled again keeps pixels of other dates of its base.
  const base = tile.source === 'filled' ? await storage.catalogue.tiles.get(tile.derivedFrom[0]!) : undefined;
  if (base?.source === 'filled')
    for (const plane of await pixelsOf(storage, base, 'provenance'))
      sources.push(
        plane.map((number: number, i: number) => (sources[0]![i] === 0 ? number : 0)) as Uint8Array,
      );
  const data = Array.from(mask!.keys()).filter((i) => mask![i] !== Mask.nodata);
  const isOther = (i: number) =>
    mask![i] === Mask.otherDate || sources.some((plane) => plane[i]! > 0 && plane[i]! < 255);
  const share = (is: (i: number) => boolean) => (100 * data.filter(is).length) / data.length;
  const percents: [number, string][] = [
    [share(isOther), 'of the pixels are of other dates'],
    [
      share((i) => mask![i] === Mask.cloud || mask![i] === Mask.shadow),
      'of the pixels are still cloud or cloud shadow',
    ],
    [
      share((i) => mask![i] === Mask.notAssessed),
      'of the pixels were not assessed for cloud, so they may be cloud',
    ],
  ];
  return percents
    .filter(([percent]) => percent > 0)
    .map(([percent, text]) => `${percent < 0.1 ? 'less than 0.1' : percent.toFixed(1)} % ${text}`);
}

/** Runs a job, and compares the Items of its tiles with its log and results, and with the Items that they are made from. */
async function check(
  node: TilewrightNode,
  process: string,
  inputs: object,
  {
    states,
    own,
    ofJob = [],
    others = [],
  }: { states: boolean; own?: RegExp; ofJob?: RegExp[]; others?: TileRecord[] },
): Promise<TileRecord[]> {
  const keyOf = ({ id, version }: TileRecord) => `${id} ${version}`;
  const before = new Set((await tilesOf(node)).map(keyOf));
  const { id, status, results } = await runJob<{ tiles: number; warnings?: string[] }>(node, process, inputs);
  assert.equal(status, 'successful', process);
  const made = (await tilesOf(node)).filter((tile) => !before.has(keyOf(tile)));
  assert.ok(made.length > 0 && made.length === results.tiles, JSON.stringify(results));
  const { lines } = (await node.server.inject(`/jobs/${id}/logs`)).json<{
    lines: { level: string; text: string }[];
  }>();
  const logged = lines.filter(({ level }) => level === 'warning').map(({ text }) => text);
  assert.deepEqual([...new Set(logged)].slice(0, 100), results.warnings ?? [], process);
  for (const pattern of ofJob)
    assert.ok(
      logged.some((text) => pattern.test(text)),
      `${process}: ${pattern}`,
    );
  const unexplained = new Set(logged);
  // Tiles that are read without being named as sources, such as other dates for the prior of cloud removal.
  const ofOthers = others.flatMap((tile) => tile.warnings ?? []);
  for (const tile of made) {
    const { properties, links } = await itemOf(node, tile);
    const { warnings = [] } = properties;
    assert.equal(new Set(warnings).size, warnings.length);
    assert.ok(warnings.length <= 20 && warnings.every((text) => text.length <= 500));
    const sources = await Promise.all(
      links
        .filter(({ rel, href }) => rel === 'derived_from' && !href.includes('/models'))
        .map(async ({ href }) => (await node.server.inject(new URL(href).pathname)).json<Item>()),
    );
    const inherited = sources.flatMap((source) => source.properties.warnings ?? []);
    const ofTile = logged.filter((text) => text.startsWith(`${tile.id}: `));
    for (const text of ofTile) unexplained.delete(text);
    for (const text of ofTile) assert.ok(warnings.includes(text.slice(tile.id.length + 2)), text);
    for (const text of inherited)
      if (!isOfShares(text)) assert.ok(warnings.includes(text), `${tile.id}: ${text}`);
    // Nothing else: each warning is of the tile, of its sources, or of all tiles of the job.
    for (const text of warnings)
      assert.ok(
        ofTile.includes(`${tile.id}: ${text}`) ||
          inherited.includes(text) ||
          logged.includes(text) ||
          ofOthers.includes(text),
        `${process}: ${tile.id} has "${text}"`,
      );
    const stated = warnings.filter((text) => isOfShares(text) && !text.includes('target'));
    const expected = await shares(node, tile);
    assert.deepEqual(stated, states ? expected : expected.filter((text) => text.endsWith('other dates')));
    if (own)
      assert.ok(
        ofTile.some((text) => own.test(text.slice(tile.id.length + 2))),
        `${process}: ${own}`,
      );
    for (const pattern of ofJob)
      assert.ok(
        warnings.some((text) => pattern.test(text)),
        `${tile.id}: ${pattern}`,
      );
  }
  assert.ok(
    [...unexplained].every((text) => ofJob.some((pattern) => pattern.test(text))),
    [...unexplained].join('; '),
  );
  return made;
}

test('Items of derived tiles carry the warnings of their job and of their sources', async (t) => {
  const folder = await tempFolder(t);
  const data = join(folder, 'data');
  const node = await nodeWithDates(t, data);
  const raw = (await tilesOf(node)).filter(({ collection }) => collection === 'test');
  const models = await Promise.all(
    CELLS.map((cell) =>
      putModel(
        node.storage,
        raw.filter(({ geocode }) => geocode === cell),
        { mse: 0.02, mean: 0.01 },
      ),
    ),
  );
  const { path } = await node.storage.models.ensureFile(models[1]!, 'weights.bin');
  const collections = ['test'];
  const filled = { collections, source: 'filled' };
  const [cell] = CELLS;
  const worse = /is worse than the mean of its training values/;

  const fills = await check(node, 'fill', { filter: { collections } }, { states: true, own: /landsat-7/ });
  assert.ok(fills.some(({ otherDates, groups }) => otherDates !== undefined && groups.length > 0));
  const partial = await check(
    node,
    'fill',
    { filter: { collections }, window: 2, toCoverage: 50, toCloud: 1 },
    { states: true },
  );
  const ids = partial.map(({ id }) => id);
  await check(node, 'fill', { filter: { ids, source: 'filled' }, dilate: 0 }, { states: true });
  await check(node, 'split', { filter: { collections }, precision: 7 }, { states: false });
  await check(node, 'split', { filter: filled, precision: 7 }, { states: true });
  await check(node, 'coalesce', { filter: { collections }, to: 'fine' }, { states: false });
  await check(node, 'coalesce', { filter: filled, to: 'fine' }, { states: true });
  const ofCell = { collections, geocode: cell };
  await check(node, 'predict', { model: 'ndvi', filter: ofCell }, { states: false, ofJob: [worse] });
  const ofFirst = raw.filter(({ geocode }) => geocode === cell);
  await putModel(node.storage, ofFirst, { model: 'cloud-removal', mse: 0.02, mean: 0.01 });
  const removal = { model: 'cloud-removal', filter: ofCell };
  const usesOthers = /^it is of landsat-[78], and uses dates of landsat-[78], too$/;
  await check(node, 'predict', removal, { states: true, own: usesOthers, ofJob: [worse], others: raw });
  const again = { model: 'ndvi', filter: { ...ofCell, source: 'filled' } };
  await check(node, 'predict', again, { states: true, own: worse, ofJob: [worse] });
  await writeFile(path, 'damaged');
  const leftOut =
    /^the model ndvi_test_g\w+, version \S+, beside it is left out: its files are damaged or lost$/;
  await check(node, 'predict', again, { states: true, own: leftOut, ofJob: [worse] });

  const cube = writeCube(folder, 'cube');
  const unclear = await ingest(node, { href: cube, precision: 6, collection: 'cubes', cloudTest: true });
  assert.match(unclear.scenes[0]!.warnings.join(), /cloud is not assessed/);
  const maps = await check(
    node,
    'analyse-pca',
    { filter: { collections: ['cubes'] }, components: 2 },
    { states: false },
  );
  for (const tile of maps) assert.deepEqual(tile.warnings, unclear.scenes[0]!.warnings);

  // After a restart, in the answers of the server and of the command.
  const all = await tilesOf(node);
  const items = await Promise.all(all.map((tile) => itemOf(node, tile)));
  await node.close();
  const found = await tilewright('search', '--data', data, '--format', 'json', '--limit', '10000');
  const printed = JSON.parse(found.stdout).features as Item[];
  const reopened = await testNode(t, data);
  for (const [i, tile] of all.entries()) {
    const expected = items[i]!.properties.warnings;
    assert.deepEqual(expected, tile.warnings);
    assert.deepEqual((await itemOf(reopened, tile)).properties.warnings, expected);
    assert.deepEqual(printed.find(({ id }) => id === tile.id)!.properties.warnings, expected);
  }
});

test('a tile has each warning once, twenty at most, and long ones shortened', () => {
  const texts = Array.from({ length: 50 }, (_, i) => `warning ${i % 30}`);
  const { warnings = [] } = tileWarnings(texts);
  assert.deepEqual(warnings, [...texts.slice(0, 19), '11 more warnings']);
  assert.deepEqual(tileWarnings([]), {});
  assert.deepEqual(tileWarnings(texts.slice(0, 20)).warnings, texts.slice(0, 20));
  const [long] = tileWarnings([LONG]).warnings!;
  assert.deepEqual([long!.length, long!.slice(0, 499)], [500, LONG.slice(0, 499)]);
  // A tile that is made from it inherits the same text.
  assert.deepEqual(tileWarnings([long!, LONG]).warnings, [long]);
});
