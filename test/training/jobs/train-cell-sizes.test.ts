/** Trainings on cells as `ingest` makes them from a scene of 30 m, and the advice for cells that are too small. */
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { encodeCog } from '../../../src/raster/index.js';
import { tilewright } from '../../support/command.js';
import { onlyNightly } from '../../support/nightly.js';
import { tempFolder } from '../../support/temp.js';
import { field } from '../synthetic-land.js';

/** Pixels of a scene, which contains at least one entire cell of precision 5. */
const SIDE = 330;
const BANDS = ['red', 'green', 'blue', 'nir', 'swir16'] as const;

/** A scene near the equator, where cells of precision 5 have 163 x 163 pixels. The first rows of each hundred may have cloud. */
async function writeScene(path: string, cloudyRows: number): Promise<void> {
  const { bands } = field(SIDE, SIDE);
  const cloud = Uint16Array.from({ length: SIDE * SIDE }, (_, at) =>
    Number(Math.floor(at / SIDE) % 100 < cloudyRows),
  );
  const image = encodeCog({
    ...{ width: SIDE, height: SIDE, dataType: 'uint16', epsg: 32633, overviews: 'nearest' },
    bands: [...BANDS.map((name) => Uint16Array.from(bands[name], (value) => 10_000 * value)), cloud],
    transform: { originX: 500_000, originY: 110_000, pixelWidth: 30, pixelHeight: 30 },
  });
  await writeFile(path, image);
}

test('models of maps are trained on the default cells of a scene of 30 m', async (t) => {
  const folder = await tempFolder(t);
  const [data, clear, cloudy] = ['data', 'clear.tif', 'cloudy.tif'].map((name) => join(folder, name));
  await writeScene(clear, 0);
  await writeScene(cloudy, 30);
  const bands = BANDS.map((name, i) => `${name}=${i + 1}`).join();
  const ingest = async (collection: string, paths: string[], ...more: string[]) => {
    for (const [i, path] of paths.entries()) {
      const datetime = `2024-06-0${1 + 5 * i}T10:00:00Z`;
      const options = ['--data', data, '--collection', collection, '--datetime', datetime];
      const { code, stderr } = await tilewright(
        ...['ingest', path, ...options, '--bands', bands, '--scale', '0.0001', '--mask-band', '6', ...more],
      );
      assert.equal(code, 0, stderr);
    }
  };
  const train = (model: string, collection: string, ...more: string[]) =>
    tilewright('train', model, '--data', data, '--collection', collection, '--epochs', '1', ...more);

  await ingest('land', [clear, cloudy]);
  for (const model of ['ndmi', 'cloud-removal']) {
    const { code, stdout, stderr } = await train(model, 'land', '--min-coverage', '95');
    assert.equal(code, 0, stderr);
    assert.ok(Number(/^(\d+) models? trained/m.exec(stdout + stderr)![1]) >= 1, stdout + stderr);
  }

  await t.test('a refusal names a precision whose cells are large enough', async () => {
    await ingest('small', [clear, cloudy], '--precision', '6');
    for (const model of ['ndvi', 'ndmi', 'cloud-removal']) {
      const { code, stderr } = await train(model, 'small');
      assert.equal(code, 1);
      const advice = /cells of \d+x\d+ px are too small for ([a-z-]+): .* --precision (\d)/.exec(stderr);
      assert.ok(advice, stderr);
      assert.deepEqual(advice.slice(1), [model, '5']);
    }
    const regional = await train('ndmi', 'small', '--mode', 'regional');
    assert.match(regional.stderr, /--precision 5 \[TW_TRAIN_NOTHING\]/);
    // The advice works: it is the default precision, at which the models above were trained.
    await ingest('large', [clear], '--precision', '5');
    assert.equal((await train('ndvi', 'large')).code, 0);
  });

  await t.test('large cells without clear ground get no such advice', { skip: onlyNightly }, async () => {
    const overcast = join(folder, 'overcast.tif');
    await writeScene(overcast, 100);
    await ingest('overcast', [overcast]);
    const { stderr } = await train('ndmi', 'overcast');
    assert.match(stderr, /0 usable patches/);
    assert.doesNotMatch(stderr, /--precision/);
  });
});
