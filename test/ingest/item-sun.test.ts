/** The position of the sun in STAC Items, by which an ingest tells the shadows of clouds. */
import assert from 'node:assert/strict';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { encodeCog, Mask, readImage } from '../../src/raster/index.js';
import { ingest, testNode, tilesOf } from '../support/node.js';
import { plantClouds } from '../support/planted-clouds.js';
import { tempFolder } from '../support/temp.js';

const SIZE = 400;
const MOVE = { dx: -45, dy: 20 };
/** The sun is on the other side of a cloud than its shadow: east of north for shadows in the southwest. */
const AZIMUTH = (180 / Math.PI) * Math.atan2(-MOVE.dx, MOVE.dy);
const NAMES = ['blue', 'green', 'red', 'nir', 'swir16', 'swir22'];

/** An Item for `image.tif` beside it, or for its bands in files of their own. */
const item = (assets: Record<string, string[]>, sun: object) =>
  JSON.stringify({
    ...{ type: 'Feature', stac_version: '1.0.0', id: 'a', collection: 'planted' },
    properties: { datetime: '2024-06-01T10:00:00Z', ...sun },
    assets: Object.fromEntries(
      Object.entries(assets).map(([key, names]) => [
        key,
        {
          ...{ href: `./${key}.tif`, type: 'image/tiff' },
          'eo:bands': names.map((name) => ({ name, common_name: name })),
          'raster:bands': names.map(() => ({ nodata: 0, scale: 1e-4, offset: 0 })),
        },
      ]),
    ),
  });

test('shadows lie away from the sun of the Item', async (t) => {
  const folder = await tempFolder(t);
  const { bands, shadow } = plantClouds({ ...MOVE, seed: 5, clouds: 60, width: SIZE, height: SIZE });
  const planes = Object.values(bands).map((band) =>
    Uint16Array.from(band, (value) => Math.round(value * 10_000)),
  );
  const file = (some: Uint16Array[]) =>
    encodeCog({
      ...{ width: SIZE, height: SIZE, dataType: 'uint16', epsg: 32633, nodata: 0, overviews: 'nearest' },
      bands: some,
      transform: { originX: 500_000, originY: 5_300_000, pixelWidth: 30, pixelHeight: 30 },
      bandTags: some.map(() => ({})),
    });
  /** Percent of the pixels that are in shadow. */
  const shadowOf = async (name: string, sun: object, isFolder: boolean): Promise<number> => {
    const inputs = join(folder, name);
    await mkdir(inputs);
    const assets = isFolder ? Object.fromEntries(NAMES.map((one) => [one, [one]])) : { image: NAMES };
    await writeFile(join(inputs, 'item.json'), item(assets, sun));
    for (const [key, names] of Object.entries(assets))
      await writeFile(join(inputs, `${key}.tif`), file(names.map((one) => planes[NAMES.indexOf(one)]!)));
    const node = await testNode(t, join(folder, `data ${name}`));
    const href = isFolder ? inputs : join(inputs, 'image.tif');
    const { failed, scenes } = await ingest(node, { href, precision: 5, cloudTest: true });
    assert.deepEqual([failed, scenes.length], [[], 1]);
    let [all, shaded] = [0, 0];
    for (const tile of await tilesOf(node)) {
      const [mask] = (await readImage(node.storage.tileImage(tile, 'mask'))).bands;
      for (const code of mask!) {
        if (code !== Mask.nodata) all++;
        if (code === Mask.shadow) shaded++;
      }
    }
    return (100 * shaded) / all;
  };
  const planted = (100 * shadow.reduce((sum, is) => sum + is, 0)) / shadow.length;
  assert.ok(planted > 2);
  const azimuth = (degrees: number) => ({ 'view:sun_azimuth': degrees, 'view:sun_elevation': 40 });
  for (const [name, sun, isFound, isFolder] of [
    ['unknown', { 'view:sun_azimuth': null }, true, false],
    ['as planted', azimuth(AZIMUTH), true, false],
    ['as planted, in a folder', azimuth(AZIMUTH), true, true],
    ['opposite', azimuth(AZIMUTH + 180), false, true],
    ['opposite, negative', azimuth(AZIMUTH - 180), false, false],
    ['across', azimuth(AZIMUTH + 90), false, false],
  ] as const) {
    const found = await shadowOf(name, sun, isFolder);
    const isNear = Math.abs(found - planted) < 0.3 * planted;
    assert.equal(isNear, isFound, `${name}: ${found} % instead of ${planted} %`);
  }
});
