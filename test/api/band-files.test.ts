/** Single bands of tiles as separate files, and the Items that name them. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { SINGLE_BAND_FORMAT } from '../../src/imagery/index.js';
import { encodeCog, openRaster, type RasterHeader, readWindow } from '../../src/raster/index.js';
import { hasGdal } from '../support/gdal.js';
import { ingest, testNode, tilesOf } from '../support/node.js';
import { writeTestScene } from '../support/scenes.js';
import { tempFolder } from '../support/temp.js';

interface Asset {
  href: string;
  title: string;
  roles: string[];
  'eo:bands': { name: string; common_name?: string }[];
  'raster:bands': object[];
  'proj:shape': number[];
}

async function withTiles(t: TestContext, options: object = {}, write = writeTestScene) {
  const folder = await tempFolder(t);
  const node = await testNode(t, join(folder, 'data'));
  const href = await write(join(folder, 'scene.tif'));
  const scene = { collection: 'test', datetime: '2024-06-01T10:00:00Z', precision: 6, ...options };
  assert.ok((await ingest(node, { href, ...scene })).tiles > 0);
  let files = 0;
  const download = async (url: string) => {
    const answer = await node.server.inject(url);
    assert.equal(answer.statusCode, 200, answer.body);
    const path = join(folder, `${files++}.tif`);
    await writeFile(path, answer.rawPayload);
    return path;
  };
  return { node, folder, download };
}

/** Bytes without a nodata value, so that tiles have masks; in cells that are large enough for overviews. */
async function writeBytes(path: string): Promise<string> {
  const [width, height] = [300, 260];
  const band = (seed: number) => Uint8Array.from({ length: width * height }, (_, i) => (i * seed) % 251);
  const transform = { originX: 500_000, originY: 5_300_000, pixelWidth: 30, pixelHeight: 30 };
  const image = { width, height, dataType: 'uint8', epsg: 32633, transform } as const;
  await writeFile(path, encodeCog({ ...image, bands: [7, 11, 13].map(band), overviews: 'mean' }));
  return path;
}

const pixelsOf = (header: RasterHeader, band: number) => {
  const { width, height } = header;
  return readWindow(header, [band], { column: 0, row: 0, width, height });
};

test('a band of a tile is a file with the same pixels, position and mask', async (t) => {
  for (const options of [
    { scale: 0.0001, maskBand: 5 },
    { scale: 0.5, offset: -3 },
  ]) {
    const { node, download } = await withTiles(t, options);
    for (const { id, groups } of (await tilesOf(node)).slice(0, 3))
      for (const group of groups) {
        const whole = await download(`/tiles/${id}/${group.name}.tif`);
        const header = await openRaster(whole);
        for (const [i, band] of group.bands.entries()) {
          const path = await download(`/tiles/${id}/${group.name}/${encodeURIComponent(band.name)}.tif`);
          const single = await openRaster(path);
          assert.equal(single.bands, 1);
          assert.deepEqual(single.bandTags, [header.bandTags[i]]);
          for (const name of ['width', 'height', 'dataType', 'nodata', 'transform', 'crs'] as const)
            assert.deepEqual(single[name], header[name], name);
          assert.deepEqual(await pixelsOf(single, 0), await pixelsOf(header, i));
        }
      }
  }
});

test('GDAL reads the same from the band as from the tile', { skip: !hasGdal && 'no GDAL' }, async (t) => {
  const { node, download, folder } = await withTiles(t, { precision: 4 }, writeBytes);
  const raw = async (path: string, band: number | string, more: string[] = []) => {
    const out = join(folder, 'raw.bin');
    const flags = ['-q', '-of', 'ENVI', '-b', String(band), ...more];
    execFileSync('gdal_translate', [...flags, path, out], { stdio: 'pipe' });
    return readFile(out);
  };
  const info = (path: string) => JSON.parse(execFileSync('gdalinfo', ['-json', path], { encoding: 'utf8' }));
  const [tile] = await tilesOf(node);
  const group = tile!.groups.find(({ bands }) => bands.length > 1)!;
  const whole = await download(`/tiles/${tile!.id}/${group.name}.tif`);
  for (const [i, { name }] of group.bands.entries()) {
    const single = await download(`/tiles/${tile!.id}/${group.name}/${name}.tif`);
    const [one, all] = [info(single), info(whole)];
    assert.deepEqual(one.geoTransform, all.geoTransform);
    assert.deepEqual(one.coordinateSystem, all.coordinateSystem);
    const { band: _one, colorInterpretation: _c, ...mine } = one.bands[0];
    const { band: _all, colorInterpretation: _d, ...theirs } = all.bands[i];
    assert.deepEqual(mine, theirs);
    assert.ok(mine.overviews.length > 0);
    const levels = [[], ...mine.overviews.map((_: object, k: number) => ['-oo', `OVERVIEW_LEVEL=${k}`])];
    for (const level of levels) {
      assert.deepEqual(await raw(single, 1, level), await raw(whole, i + 1, level));
      const mask = await raw(single, 'mask', level);
      assert.deepEqual(mask, await raw(whole, 'mask', level));
      assert.ok(mask.includes(0) && mask.includes(255));
    }
  }
});

test('ranges of a band file match the complete file, even across its parts', async (t) => {
  const { node } = await withTiles(t);
  const tile = (await tilesOf(node)).find(({ groups }) => groups[0]!.bands.length > 1)!;
  const [{ name, bands }] = tile.groups as [(typeof tile.groups)[0]];
  const url = `/tiles/${tile.id}/${name}/${bands[1]!.name}.tif`;
  const get = (headers: Record<string, string> = {}, method: 'GET' | 'HEAD' = 'GET') =>
    node.server.inject({ method, url, headers });
  const whole = await get();
  const file = whole.rawPayload;
  assert.equal(whole.headers['content-length'], String(file.length));
  // The program makes this file, so its ETag has the form of such files, too.
  assert.equal(whole.headers.etag, `"${tile.version}-${SINGLE_BAND_FORMAT}"`);
  const stored = await node.server.inject({ method: 'HEAD', url: `/tiles/${tile.id}/${name}.tif` });
  assert.equal(stored.headers.etag, `"${tile.version}"`);
  const head = await get({}, 'HEAD');
  assert.deepEqual([head.headers['content-length'], head.body], [String(file.length), '']);
  for (const [start, end] of [
    [0, 0],
    [0, 99],
    [3, file.length - 1],
    [500, 3000],
    [file.length - 10, file.length - 1],
  ] as const) {
    const part = await get({ range: `bytes=${start}-${end}` });
    assert.equal(part.statusCode, 206);
    assert.deepEqual(part.rawPayload, file.subarray(start, end + 1), `${start}-${end}`);
    assert.equal(part.headers['content-range'], `bytes ${start}-${end}/${file.length}`);
  }
  assert.equal((await get({ range: `bytes=${file.length}-` })).statusCode, 416);
  assert.equal((await get({ 'if-none-match': String(whole.headers.etag) })).statusCode, 304);
  for (const missing of [
    `/tiles/${tile.id}/${name}/no.tif`,
    `/tiles/${tile.id}/no/${bands[0]!.name}.tif`,
    '/tiles/no/no/no.tif',
  ])
    assert.equal((await node.server.inject(missing)).statusCode, 404, missing);
});

test('Items name the files of single bands if asked to', async (t) => {
  const { node } = await withTiles(t);
  const plain = (await node.server.inject('/search?limit=1')).json().features[0];
  const item = `/collections/test/items/${plain.id}`;
  const asked = [
    (await node.server.inject('/search?limit=1&bandAssets=true')).json().features[0],
    (await node.server.inject('/collections/test/items?limit=1&bandAssets=true')).json().features[0],
    (await node.server.inject(`${item}?bandAssets=true`)).json(),
    (
      await node.server.inject({ method: 'POST', url: '/search', payload: { limit: 1, bandAssets: true } })
    ).json().features[0],
    (
      await node.server.inject({ method: 'POST', url: '/search?bandAssets=true', payload: { limit: 1 } })
    ).json().features[0],
  ];
  for (const { assets, ...rest } of asked) {
    const { assets: others, ...same } = plain;
    assert.deepEqual(rest, same);
    const added = Object.keys(assets).filter((name) => !(name in others));
    const [group] = (await tilesOf(node))[0]!.groups;
    assert.deepEqual(
      added,
      group!.bands.map(({ name }) => `${group!.name}_${name}`),
    );
    for (const name of Object.keys(others)) assert.deepEqual(assets[name], others[name]);
    for (const [i, name] of added.entries()) {
      const asset: Asset = assets[name];
      const whole: Asset = others[group!.name];
      assert.deepEqual(asset['eo:bands'], [whole['eo:bands'][i]]);
      assert.deepEqual(asset['raster:bands'], [whole['raster:bands'][i]]);
      assert.deepEqual(asset['proj:shape'], whole['proj:shape']);
      assert.equal((await node.server.inject(new URL(asset.href).pathname)).statusCode, 200, asset.href);
    }
  }
  const { links } = (await node.server.inject('/search?limit=1&bandAssets=true')).json();
  const next = new URL(links.find(({ rel }: { rel: string }) => rel === 'next').href);
  assert.equal(next.searchParams.get('bandAssets'), 'true');
  const posted = await node.server.inject({
    method: 'POST',
    url: '/search?bandAssets=true',
    payload: { limit: 1 },
  });
  assert.equal(posted.json().links.find(({ rel }: { rel: string }) => rel === 'next').body.bandAssets, true);
});
