/** Masks that are widened when dates are read, of whole cells and of windows of them. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { Mask, widenClouds } from '../../../src/raster/index.js';
import {
  type AcquisitionFiles,
  readAcquisitions,
  readAcquisitionWindow,
} from '../../../src/training/acquisitions.js';
import { imageFile } from '../../support/image-file.js';
import { tempFolder } from '../../support/temp.js';
import { writeDate, writeRaster } from '../acquisition-files.js';
import { field } from '../synthetic-land.js';

const CODES = [Mask.nodata, Mask.cloud, Mask.shadow, Mask.snow, Mask.estimated, Mask.notAssessed];

const images = fc
  .record({ width: fc.integer({ min: 1, max: 24 }), height: fc.integer({ min: 1, max: 24 }) })
  .chain(({ width, height }) =>
    fc.record({
      width: fc.constant(width),
      height: fc.constant(height),
      // Mostly clear.
      mask: fc
        .uint8Array({ minLength: width * height, maxLength: width * height })
        .map((bytes) => bytes.map((byte) => CODES[byte % 64] ?? Mask.clear)),
      share: fc.record({
        x: fc.double({ min: 0.001, max: 0.4, noNaN: true }),
        y: fc.double({ min: 0.001, max: 0.4, noNaN: true }),
      }),
    }),
  );

test('clear pixels within the distance of cloud and shadow have their code, all others keep theirs', () => {
  fc.assert(
    fc.property(images, ({ width, height, mask, share }) => {
      const before = mask.slice();
      const wide = widenClouds(mask, width, height, share);
      assert.deepEqual(mask, before);
      const [x, y] = [Math.max(1, share.x * width), Math.max(1, share.y * height)];
      for (const [at, code] of mask.entries()) {
        const distances = (wanted: number) =>
          [...mask.keys()]
            .filter((i) => mask[i] === wanted)
            .map((i) => {
              const across = (i % width) - (at % width);
              const down = Math.floor(i / width) - Math.floor(at / width);
              return (across / x) ** 2 + (down / y) ** 2;
            });
        const isNear = (wanted: number) => distances(wanted).some((distance) => distance < 1 + 1e-9);
        // At exactly this distance, rounding decides.
        const isOnEdge = [...distances(Mask.cloud), ...distances(Mask.shadow)].some(
          (far) => Math.abs(far - 1) < 1e-6,
        );
        if (isOnEdge && (x > 1 || y > 1)) continue;
        const isFree = code === Mask.clear || code === Mask.notAssessed;
        const expected = !isFree
          ? code
          : isNear(Mask.cloud)
            ? Mask.cloud
            : isNear(Mask.shadow)
              ? Mask.shadow
              : code;
        assert.equal(wide[at], expected, `pixel ${at}`);
      }
      assert.deepEqual(widenClouds(mask, width, height, { x: 0, y: 0 }), mask);
    }),
    { seed: 42, numRuns: 200 },
  );
});

test('a window of a widened date is that part of the whole date', async (t) => {
  const folder = await tempFolder(t);
  let run = 0;
  const size = { width: 30, height: 20 };
  const window = fc.tuple(
    fc.nat(29),
    fc.nat(19),
    fc.integer({ min: 1, max: 30 }),
    fc.integer({ min: 1, max: 20 }),
  );
  await fc.assert(
    fc.asyncProperty(
      fc.nat(),
      window,
      fc.constantFrom(1, 2),
      fc.constantFrom(0.01, 0.1, 0.3),
      async (seed, [column, row, across, down], fine, far) => {
        const { bands: _, ...land } = field(size.width, size.height, { seed });
        const { bands } = writeDate(folder, `date${run++}`, field(size.width, size.height, { seed }));
        // The mask is finer than the bands.
        const random = fc.sample(fc.uint8Array({ minLength: 600 * fine ** 2, maxLength: 600 * fine ** 2 }), {
          seed,
          numRuns: 1,
        })[0];
        const codes = random.map((byte) => (byte < 6 ? Mask.cloud : byte < 9 ? Mask.shadow : Mask.clear));
        const mask = `${folder}/mask${run}.tif`;
        writeRaster(mask, 'uint8', { width: size.width * fine, height: size.height * fine }, [codes]);
        const files: AcquisitionFiles = {
          time: land.time,
          bands: { red: bands.red },
          mask: imageFile(mask),
          rim: { x: far, y: far / 2 },
        };
        const read = await readAcquisitions([files], undefined, size);
        assert.ok('dates' in read);
        const [whole] = read.dates;
        const plain = await readAcquisitions([{ ...files, rim: undefined }], undefined, size);
        assert.ok('dates' in plain);
        assert.deepEqual(whole.stated ?? whole.mask, plain.dates[0].mask);
        const part = {
          ...{ column, row },
          width: Math.min(across, size.width - column),
          height: Math.min(down, size.height - row),
        };
        const { mask: found } = await readAcquisitionWindow(files, size, part);
        for (const [at, code] of found.entries()) {
          const x = column + (at % part.width);
          const y = row + Math.floor(at / part.width);
          assert.equal(code, whole.mask[y * size.width + x], `pixel ${x}, ${y}`);
        }
      },
    ),
    { seed: 42, numRuns: 40 },
  );
});
