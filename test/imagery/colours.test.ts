/** Colour formulas and colormaps against color-operations and rio-tiler. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import { COLORMAPS, colormap } from '../../src/imagery/colours/colormaps.js';
import { applyColourFormula, parseColourFormula } from '../../src/imagery/colours/colour-formula.js';
import { parseColormap } from '../../src/imagery/colours/custom-colormap.js';
import { paint } from '../../src/imagery/colours/paint.js';
import { planeOf, reference } from './titiler.js';

for (const { formula, planes } of reference.formulas)
  test(`"${formula}" is what color-operations makes of it`, () => {
    const pixels = reference.pixels.map(planeOf);
    applyColourFormula(pixels, parseColourFormula(formula, 3));
    for (const [p, plane] of planes.entries())
      for (const [i, wanted] of plane.entries())
        assert.ok(
          Math.abs(pixels[p][i] - wanted!) < 1e-9,
          `plane ${p}, pixel ${i}: ${pixels[p][i]}, ${wanted}`,
        );
  });

test('a formula that cannot be used says why', () => {
  const fail = (formula: string, why: RegExp, planes = 3) =>
    assert.throws(() => parseColourFormula(formula, planes), { code: 'TW_IMAGERY_LOOK', message: why });
  fail('', /^color_formula is empty/);
  fail('brighten rgb 2', /begins with "brighten".*gamma BANDS NUMBER/);
  fail('gamma rgb', /write gamma BANDS NUMBER/);
  fail('gamma', /write gamma BANDS NUMBER/);
  fail('gamma rgb 2 3', /write gamma BANDS NUMBER/);
  fail('gamma rgb 0', /above 0/);
  fail('gamma rgb 1e999', /write gamma/);
  fail('gamma rgbx 2', /"rgbx"/);
  fail('gamma 4 2', /"4"/);
  fail('gamma g 2', /names band g, and the map has 1/, 1);
  fail('sigmoidal rgb 3', /write sigmoidal BANDS CONTRAST BIAS/);
  fail('sigmoidal rgb 3 1.5', /bias of 1.5/);
  fail('saturation 2', /for 3 bands/, 1);
  fail('gamma r 2 '.repeat(9), /more than 8 operations/);
  fail(`gamma r ${'1'.repeat(500)}`, /longer than 500/);
});

test('extreme formulas stay within colours', () => {
  const pixels = [0, 1, 2].map(() => Float64Array.from([0, 0.3, 1]));
  const formula = 'sigmoidal rgb 1e9 0.5 sigmoidal rgb -1e9 0.1 saturation 1e9 gamma rgb 1e-9';
  applyColourFormula(pixels, parseColourFormula(formula, 3));
  for (const plane of pixels) for (const value of plane) assert.ok(value >= 0 && value <= 1, `${value}`);
});

test('named colormaps are those of rio-tiler and Matplotlib', () => {
  for (const [name, digest] of Object.entries(reference.named)) {
    const sum = createHash('sha1').update(colormap(name)!).digest('hex').slice(0, 10);
    assert.equal(sum, digest, name);
    assert.ok(COLORMAPS.includes(name), name);
  }
  assert.ok(Object.keys(reference.named).length > 110);
  assert.deepEqual(colormap('JET_R'), colormap('jet_r'));
  assert.equal(colormap('__proto__'), undefined);
  assert.equal(colormap('jet_r_r'), undefined);
  // rio-tiler's reversed maps are rounded anew.
  for (const [i, colour] of reference.jet_r.entries())
    for (const [channel, wanted] of colour.entries())
      assert.ok(Math.abs(colormap('jet_r')![60 * i + channel] - wanted) <= 1);
});

for (const { colormap: given, values, colours } of reference.colormaps)
  test(`colours of ${JSON.stringify(given).slice(0, 50)} are those of rio-tiler`, () => {
    const pixels = paint([Float64Array.from(values)], { colouring: parseColormap(JSON.stringify(given)) });
    for (const [i, colour] of colours.entries())
      assert.deepEqual([...pixels.subarray(4 * i, 4 * i + 4)], colour, `${values[i]}`);
  });

test('a colormap that cannot be used says why', () => {
  const fail = (text: string, why: RegExp) =>
    assert.throws(() => parseColormap(text), { code: 'TW_IMAGERY_LOOK', message: why });
  fail('{', /^colormap is not JSON/);
  fail('3', /neither an object/);
  fail('null', /neither an object/);
  fail('{}', /has no colours/);
  fail('[]', /has no colours/);
  fail('{"x": "#fff"}', /the value "x"/);
  fail('{"": "#fff"}', /the value ""/);
  fail('{"1": "white"}', /the colour "white"/);
  fail('{"1": "#ff"}', /the colour/);
  fail('{"1": [1, 2]}', /the colour \[1,2\]/);
  fail('{"1": [1, 2, 256]}', /the colour/);
  fail('[1]', /the entry 1/);
  fail('[[[2, 1], "#fff"]]', /the interval \[2,1\]/);
  fail('[[[0, null], "#fff"]]', /the interval/);
  const nested = '['.repeat(5000) + ']'.repeat(5000);
  fail(nested, /the entry \[\.\.\.\], which/);
  fail(`[[${nested}, "#fff"]]`, /the interval \[\.\.\.\], which/);
  fail(`[[[0, 1], ${nested}]]`, /the colour \[\.\.\.\]:/);
  fail(`{"1": ${nested}}`, /the colour \[\.\.\.\]:/);
  fail(`{"1": ${'{"a":'.repeat(2000)}1${'}'.repeat(2000)}}`, /the colour \{\.\.\.\}:/);
  const many = Object.fromEntries(Array.from({ length: 1025 }, (_, i) => [i, '#fff']));
  fail(JSON.stringify(many), /more than 1024 entries/);
  fail(`{"1":"${'x'.repeat(16_384)}"}`, /longer than 16384/);
});
