import assert from 'node:assert/strict';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { fromFile } from 'geotiff';
import { writeBrokenFiles } from '../../data-samples/index.js';

describe('broken files', () => {
  let folder: string;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'samples-'));
    await writeBrokenFiles(folder);
  });
  after(() => rm(folder, { recursive: true }));

  const open = async (name: string) => (await fromFile(join(folder, name))).getImage();

  it('ends early where it is truncated: the directory is there, the pixels are not', async () => {
    const image = await open('truncated.tif');
    assert.equal(image.getWidth(), 64);
    await assert.rejects(image.readRasters());
  });

  it('is no TIFF where it says so', async () => {
    await assert.rejects(fromFile(join(folder, 'not-a-tiff.tif')));
  });

  it('has pixels but no system without its keys', async () => {
    const image = await open('no-crs.tif');
    assert.equal(image.getGeoKeys()?.ProjectedCSTypeGeoKey, undefined);
    const [pixels] = (await image.readRasters()) as unknown as [Uint16Array];
    assert.equal(pixels[0], 1000);
  });

  it('holds nothing but nodata', async () => {
    const [pixels] = (await (await open('all-nodata.tif')).readRasters()) as unknown as [Uint16Array];
    assert.ok(pixels.every((number) => number === 0));
  });

  it('names a red band that is not there', async () => {
    const names = await readdir(join(folder, 'landsat-without-red'));
    const mtl = await readFile(
      join(folder, 'landsat-without-red', names.find((n) => n.endsWith('_MTL.txt'))!),
      'utf8',
    );
    const red = /FILE_NAME_BAND_4 = "(.*)"/.exec(mtl)![1]!;
    assert.ok(!names.includes(red));
    assert.ok(names.includes(red.replace('_B4', '_B5')));
  });
});
