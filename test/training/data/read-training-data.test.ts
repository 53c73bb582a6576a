import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import fc from 'fast-check';
import { Mask, readImage } from '../../../src/raster/index.js';
import { readAcquisitions, readAcquisitionWindow } from '../../../src/training/acquisitions.js';
import { imageFile } from '../../support/image-file.js';
import { writeDate, writeRaster } from '../acquisition-files.js';
import { field } from '../synthetic-land.js';

const folder = mkdtempSync(join(tmpdir(), 'tilewright-read-'));
after(() => rmSync(folder, { recursive: true }));

describe('readAcquisitions', () => {
  it('reads physical values, with NaN for nodata, and counts the bytes', async () => {
    const date = field(40, 30);
    date.bands.green[7] = Number.NaN;
    const files = writeDate(folder, 'whole', date);
    const read = await readAcquisitions([files]);
    assert.ok('dates' in read);
    const [pixels] = read.dates;
    assert.deepEqual([pixels!.width, pixels!.height, pixels!.time], [40, 30, date.time]);
    for (const band of ['red', 'green', 'blue', 'nir', 'swir16'] as const) {
      const furthest = Math.max(
        ...date.bands[band].map((value, at) =>
          Number.isNaN(value) ? 0 : Math.abs(pixels!.bands[band]![at]! - value),
        ),
      );
      assert.ok(furthest <= 0.000051, `${band} is off by ${furthest}`);
    }
    assert.ok(Number.isNaN(pixels!.bands.green![7]));
    assert.deepEqual(pixels!.mask, date.mask);
    const bytes = [files.bands.red, files.bands.nir, files.mask].map(({ path }) => statSync(path).size);
    assert.equal(
      read.bytesRead,
      bytes.reduce((a, b) => a + b),
    );
  });

  it('assigns a pixel the worst code of the finer mask', async () => {
    const files = writeDate(folder, 'coarse', field(6, 5));
    const mask = join(folder, 'fine-mask.tif');
    const worstFirst = [Mask.nodata, Mask.cloud, Mask.shadow, Mask.snow, Mask.notAssessed, Mask.clear];
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 3 }),
        fc.array(fc.constantFrom(...worstFirst), { minLength: 270, maxLength: 270 }),
        async (factor, codes) => {
          const fine = Uint8Array.from(codes.slice(0, 30 * factor * factor));
          writeRaster(mask, 'uint8', { width: 6 * factor, height: 5 * factor }, [fine]);
          const read = await readAcquisitions([{ ...files, mask: imageFile(mask) }]);
          assert.ok('dates' in read);
          read.dates[0]!.mask.forEach((code, at) => {
            const below = fine.filter(
              (_, i) =>
                Math.floor((i % (6 * factor)) / factor) === at % 6 &&
                Math.floor(i / (6 * factor) / factor) === Math.floor(at / 6),
            );
            assert.equal(
              code,
              worstFirst.find((worst) => below.includes(worst)),
            );
          });
        },
      ),
      { seed: 42, numRuns: 12 },
    );
  });

  it('skips a cell whose dates differ in size, and reports the sizes', async () => {
    const small = writeDate(folder, 'small', field(20, 20));
    const large = writeDate(folder, 'large', field(40, 40));
    const reason = async (files: Parameters<typeof readAcquisitions>[0]) => {
      const read = await readAcquisitions(files);
      assert.ok('skipped' in read);
      return read.skipped;
    };
    assert.equal(await reason([small, large]), 'the dates differ in size: 20x20 and 40x40 px');
    const { red } = small.bands;
    const bright = { ...red, scale: 1e4 * red.scale };
    assert.match(
      await reason([{ ...small, bands: { ...small.bands, red: bright } }]),
      /mean red is .*--scale/,
    );
  });

  it('resamples bands to the coarsest size by the mean of the pixels with a value', async () => {
    const fine = field(40, 40);
    fine.bands.red[1] = NaN;
    const visible = writeDate(folder, 'fine-visible', fine);
    const infrared = writeDate(folder, 'coarse-infrared', field(20, 20));
    const { nir, swir16 } = infrared.bands;
    const read = await readAcquisitions([{ ...visible, bands: { ...visible.bands, nir, swir16 } }]);
    assert.ok('dates' in read);
    const [date] = read.dates;
    assert.deepEqual([date!.width, date!.height, date!.mask.length], [20, 20, 400]);
    const { red } = fine.bands;
    const expected = [(red[0]! + red[40]! + red[41]!) / 3, (red[2]! + red[3]! + red[42]! + red[43]!) / 4];
    expected.forEach((value, at) => {
      assert.ok(Math.abs(date!.bands.red![at]! - value) < 1e-4);
    });
  });

  it('resamples all bands to the requested size, as if another band had it', async () => {
    const visible = writeDate(folder, 'visible-alone', field(40, 30));
    const { red, green, blue } = visible.bands;
    const alone = { ...visible, bands: { red, green, blue } };
    const { swir16 } = writeDate(folder, 'coarser', field(20, 15)).bands;
    const together = await readAcquisitions([{ ...alone, bands: { ...alone.bands, swir16 } }]);
    const asked = await readAcquisitions([alone], undefined, { width: 20, height: 15 });
    assert.ok('dates' in together && 'dates' in asked);
    const { bands, ...rest } = together.dates[0]!;
    const { swir16: _, ...others } = bands;
    assert.deepEqual(asked.dates[0], { ...rest, bands: others });
    // Reading at the file's own size changes nothing.
    assert.deepEqual(
      await readAcquisitions([alone], undefined, { width: 40, height: 30 }),
      await readAcquisitions([alone]),
    );
  });

  it('puts means where their pixels are, at any ratio of the sizes', async () => {
    const height = 3;
    for (const [width, coarse] of [
      [488, 244],
      [487, 244],
      [489, 244],
      [796, 652],
      [100, 33],
      [8, 7],
    ]) {
      const ramp = Float32Array.from({ length: width * height }, (_, at) => ((at % width) + 0.5) / width);
      const path = join(folder, `ramp-${width}.tif`);
      writeRaster(path, 'float32', { width, height }, [ramp]);
      const files = writeDate(folder, `ramp-${width}-date`, field(width, height));
      const red = { ...imageFile(path), band: 0, scale: 1, offset: 0 };
      const date = { ...files, bands: { red } };
      const size = { width: coarse, height };
      const read = await readAcquisitions([date], undefined, size);
      assert.ok('dates' in read);
      const means = read.dates[0].bands.red!;
      assert.equal(means.length, coarse * height);
      for (const [at, mean] of means.entries()) {
        const shift = (mean - ((at % coarse) + 0.5) / coarse) * width;
        // The steps of a ramp of pixels move its mean by up to w (1 - w) / 2 of a pixel, where w is the part of a pixel that is covered.
        assert.ok(
          Math.abs(shift) <= (coarse / width) * 0.125 + 1e-4,
          `${width} to ${coarse}: ${shift} pixels at ${at}`,
        );
      }
      const window = { column: Math.floor(coarse / 3), row: 1, width: Math.ceil(coarse / 3), height: 2 };
      const part = await readAcquisitionWindow(date, size, window);
      const expected = Float32Array.from(
        { length: window.width * window.height },
        (_, i) => means[(1 + Math.floor(i / window.width)) * coarse + window.column + (i % window.width)],
      );
      assert.deepEqual(part.bands.red, expected);
    }
  });

  it('excludes infinite pixels from means', async () => {
    const finite = field(40, 40);
    const { green, blue } = finite.bands;
    const red = finite.bands.red.map((value, at) => ([0, 7, 100].includes(at) ? Infinity : value));
    for (const minus of [[], [55]]) {
      for (const at of minus) red[at] = -Infinity;
      const files = writeDate(folder, 'infinite', finite);
      const path = join(folder, 'infinite-float.tif');
      writeRaster(path, 'float32', finite, [blue, green, red]);
      const float = { ...files.bands.red, ...imageFile(path), scale: 1, offset: 0 };
      const read = await readAcquisitions([{ ...files, bands: { ...files.bands, red: float } }]);
      assert.ok('dates' in read, JSON.stringify(read));
      assert.deepEqual(read.dates[0]!.bands.red, red);
      const { nir } = writeDate(folder, 'coarse-nir', field(20, 20)).bands;
      const coarse = await readAcquisitions([{ ...files, bands: { ...files.bands, red: float, nir } }]);
      assert.ok('dates' in coarse, JSON.stringify(coarse));
      const known = coarse.dates[0]!.bands.red!;
      assert.ok(known.every(Number.isFinite));
      assert.equal(known[0], Math.fround((red[1]! + red[40]! + red[41]!) / 3));
    }
  });

  it('uses the worst mask code that a pixel covers, whatever the mask size', async () => {
    const small = writeDate(folder, 'touched', field(20, 20));
    const odd = writeDate(folder, 'odd', field(30, 30));
    const read = await readAcquisitions([{ ...small, mask: odd.mask }]);
    assert.ok('dates' in read);
    const fine = (await readImage(odd.mask)).bands[0];
    const rank = [0, 2, 3, 4, 255, 1];
    read.dates[0].mask.forEach((code, pixel) => {
      const row = 1.5 * Math.floor(pixel / 20);
      const column = 1.5 * (pixel % 20);
      const touched: number[] = [];
      for (let r = Math.floor(row); r < row + 1.5; r++) {
        for (let c = Math.floor(column); c < column + 1.5; c++) touched.push(fine[30 * r + c]);
      }
      assert.equal(
        code,
        rank.find((one) => touched.includes(one)),
      );
    });
  });
});
