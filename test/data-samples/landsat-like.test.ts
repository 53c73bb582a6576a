import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { fromFile } from 'geotiff';
import { type LandsatScene, qaPixel, writeLandsatLikeScene } from '../../data-samples/index.js';

const clearLand = {
  fill: false,
  dilatedCloud: false,
  cirrus: false,
  cloud: false,
  shadow: false,
  snow: false,
  water: false,
};

describe('QA_PIXEL', () => {
  it('gives the values that the product guide lists', () => {
    assert.equal(qaPixel({ ...clearLand, fill: true }), 1);
    assert.equal(qaPixel(clearLand), 21_824);
    assert.equal(qaPixel({ ...clearLand, dilatedCloud: true }), 21_762);
    assert.equal(qaPixel({ ...clearLand, water: true }), 21_952);
    assert.equal(qaPixel({ ...clearLand, cloud: true }), 22_280);
    assert.equal(qaPixel({ ...clearLand, shadow: true }), 23_888);
    assert.equal(qaPixel({ ...clearLand, snow: true }), 30_048);
    assert.equal(qaPixel({ ...clearLand, cirrus: true }), 54_596);
  });
});

describe('the landsat-like scene', () => {
  let folder: string;
  let scene: LandsatScene;
  let mtl: string;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'samples-'));
    scene = await writeLandsatLikeScene(folder, { size: { width: 240, height: 200 } });
    mtl = await readFile(scene.mtlPath, 'utf8');
  });
  after(() => rm(folder, { recursive: true }));

  const read = async (band: string) => {
    const tiff = await fromFile(scene.bandPaths[band]!);
    const image = await tiff.getImage();
    const [pixels] = (await image.readRasters()) as unknown as [Uint16Array];
    tiff.close();
    return { image, pixels };
  };
  const value = (key: string) => new RegExp(`^ *${key} = "?([^"\\n]*)"?$`, 'm').exec(mtl)?.[1] ?? '';

  it('has the files that its MTL names, the panchromatic band twice as fine', async () => {
    for (let band = 1; band <= 9; band++) {
      assert.equal(value(`FILE_NAME_BAND_${band}`), basename(scene.bandPaths[`B${band}`]!));
      const { image } = await read(`B${band}`);
      const factor = band === 8 ? 2 : 1;
      assert.deepEqual([image.getWidth(), image.getHeight()], [240 * factor, 200 * factor]);
      assert.deepEqual(image.getResolution().slice(0, 2), [30 / factor, -30 / factor]);
      assert.deepEqual(image.getOrigin().slice(0, 2), [492_900, 5_302_200]);
    }
    assert.equal(value('FILE_NAME_QUALITY_L1_PIXEL'), basename(scene.bandPaths['QA_PIXEL']!));
    assert.match(mtl, /\nEND\n$/);
  });

  it('is fill outside a tilted footprint, in all bands and in QA_PIXEL alike', async () => {
    const quality = (await read('QA_PIXEL')).pixels;
    const fill = quality.filter((bits) => bits === 1).length / quality.length;
    assert.ok(fill > 0.1 && fill < 0.6, `${fill}`);
    for (const band of ['B1', 'B4', 'B7', 'B9']) {
      const { pixels } = await read(band);
      assert.ok(pixels.every((number, i) => (number === 0) === (quality[i] === 1)));
    }
    const fine = (await read('B8')).pixels;
    assert.equal(
      fine.filter((number) => number === 0).length,
      4 * quality.filter((bits) => bits === 1).length,
    );
  });

  it('becomes sensible reflectance with the gain, bias and sun elevation of its MTL', async () => {
    const sunSine = Math.sin((Number(value('SUN_ELEVATION')) * Math.PI) / 180);
    const quality = (await read('QA_PIXEL')).pixels;
    const meanOf = async (band: number, where: (bits: number) => boolean) => {
      const gain = Number(value(`REFLECTANCE_MULT_BAND_${band}`));
      const bias = Number(value(`REFLECTANCE_ADD_BAND_${band}`));
      const { pixels } = await read(`B${band}`);
      const seen = [...pixels].filter((_, i) => where(quality[i]!)).map((n) => (n * gain + bias) / sunSine);
      return seen.reduce((sum, n) => sum + n, 0) / seen.length;
    };
    const clear = (bits: number) => bits === 21_824;
    const water = (bits: number) => bits === 21_952;
    const cloud = (bits: number) => (bits & 8) !== 0;
    assert.ok((await meanOf(4, clear)) < 0.16 && (await meanOf(5, clear)) > 0.2);
    assert.ok((await meanOf(5, water)) < 0.03);
    assert.ok((await meanOf(2, cloud)) > 0.3);
  });

  it('has cloud, dilated cloud, shadow and water', async () => {
    const quality = (await read('QA_PIXEL')).pixels;
    for (const bit of [1, 3, 4, 6, 7])
      assert.ok(
        quality.some((bits) => bits & (1 << bit)),
        `bit ${bit}`,
      );
  });
});
