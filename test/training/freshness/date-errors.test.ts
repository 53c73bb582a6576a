/** The ground on which the errors of dates are measured. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { loadEngine } from '../../../src/engines/load.js';
import { readAcquisitions } from '../../../src/training/acquisitions.js';
import { type DateError, dateErrors } from '../../../src/training/date-errors.js';
import { labelImages } from '../../../src/training/labelled-images.js';
import { getModelSpec } from '../../../src/training/models/builtin.js';
import { buildModel } from '../../../src/training/models/network.js';
import { makePatches } from '../../../src/training/patches.js';
import { tempFolder } from '../../support/temp.js';
import { writeDate } from '../acquisition-files.js';
import { field } from '../synthetic-land.js';

test('the errors of one ground do not depend on the pixels of the other, on any side', async (t) => {
  const folder = await tempFolder(t);
  const { tf } = await loadEngine('wasm');
  const spec = getModelSpec('ndvi');
  const model = buildModel(tf, spec, 1);
  t.after(() => model.dispose());
  for (const [width, height] of [
    [163, 150],
    [240, 128],
    [128, 240],
  ] as const) {
    const land = field(width, height);
    const read = await readAcquisitions([writeDate(folder, 'land', land)]);
    assert.ok('dates' in read);
    const made = makePatches(spec, labelImages(spec, read.dates));
    assert.ok('dataset' in made);
    const { window } = made.dataset.holdOut;
    const measure = async (name: string, changes: (isHeldOut: boolean) => boolean) => {
      const nir = land.bands.nir.map((value, at) => {
        const [x, y] = [(at % width) - window.column, Math.floor(at / width) - window.row];
        const isHeldOut = x >= 0 && y >= 0 && x < window.width && y < window.height;
        return changes(isHeldOut) ? value / 3 : value;
      });
      const files = writeDate(folder, name, { ...land, bands: { ...land.bands, nir } });
      return dateErrors(tf, model, spec, [files], window);
    };
    const before = await measure('same', () => false);
    const heldOut = await measure('held-out', (isHeldOut) => isHeldOut);
    const other = await measure('other', (isHeldOut) => !isHeldOut);
    const on = (errors: DateError[], ground: true | undefined) => {
      const { error } = errors.find(({ trained }) => trained === ground)!;
      return error;
    };
    assert.equal(on(heldOut, true), on(before, true));
    assert.equal(on(other, undefined), on(before, undefined));
    assert.notEqual(on(heldOut, undefined), on(before, undefined));
    assert.notEqual(on(other, true), on(before, true));
  }
});
