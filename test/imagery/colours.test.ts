/** Colour formulas and colormaps compared with color-operations and rio-tiler. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import sharp from 'sharp';
import { COLORMAPS, namedColormap, parseColormap } from '../../src/imagery/colormaps.js';
import {
  applyColourFormula,
  encodeImage,
  type ImageFormat,
  isTransparent,
  parseColourFormula,
  renderRgba,
} from '../../src/imagery/colours.js';
import { planeOf, reference } from './titiler.js';

for (const { formula, planes } of reference.formulas)
  test(`"${formula}" gives the result of color-operations`, () => {
    const pixels = reference.pixels.map(planeOf);
    applyColourFormula(pixels, parseColourFormula(formula, 3));
    for (const [p, plane] of planes.entries())
      for (const [i, wanted] of plane.entries())
        assert.ok(
          Math.abs(pixels[p][i] - wanted!) < 1e-9,
          `plane ${p}, pixel ${i}: ${pixels[p][i]}, ${wanted}`,
        );
  });

test('an unusable formula is refused with a reason', () => {
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
  fail('gamma rgb', /has "gamma rgb": write gamma/);
  fail('sigmoidal rgb 3 x', /write sigmoidal/);
  fail('sigmoidal', /write sigmoidal/);
  fail('sigmoidal rgb 3 -0.1', /bias of -0.1/);
  fail('saturation x', /write saturation NUMBER/);
  fail('gamma 0 2', /"0"/);
  fail('gamma b 2', /names band b, and the map has 2/, 2);
  fail('x', /operations are gamma BANDS NUMBER, sigmoidal BANDS CONTRAST BIAS, saturation NUMBER/);
  fail('gamma r 2 '.repeat(9), /more than 8 operations/);
  fail(`gamma r ${'1'.repeat(500)}`, /longer than 500/);
});

test('extreme formulas give valid colours', () => {
  const pixels = [0, 1, 2].map(() => Float64Array.from([0, 0.3, 1]));
  const formula = 'sigmoidal rgb 1e9 0.5 sigmoidal rgb -1e9 0.1 saturation 1e9 gamma rgb 1e-9';
  applyColourFormula(pixels, parseColourFormula(formula, 3));
  for (const plane of pixels) for (const value of plane) assert.ok(value >= 0 && value <= 1, `${value}`);
});

test('named colormaps equal those of rio-tiler and Matplotlib', () => {
  for (const [name, digest] of Object.entries(reference.named)) {
    const sum = createHash('sha1').update(namedColormap(name)!).digest('hex').slice(0, 10);
    assert.equal(sum, digest, name);
    assert.ok(COLORMAPS.includes(name), name);
  }
  assert.ok(Object.keys(reference.named).length > 110);
  assert.deepEqual(namedColormap('JET_R'), namedColormap('jet_r'));
  assert.equal(namedColormap('__proto__'), undefined);
  assert.equal(namedColormap('jet_r_r'), undefined);
  // rio-tiler rounds its reversed maps again.
  for (const [i, colour] of reference.jet_r.entries())
    for (const [channel, wanted] of colour.entries())
      assert.ok(Math.abs(namedColormap('jet_r')![60 * i + channel] - wanted) <= 1);
});

for (const { colormap: given, values, colours } of reference.colormaps)
  test(`colours of ${JSON.stringify(given).slice(0, 50)} equal those of rio-tiler`, () => {
    const pixels = renderRgba([Float64Array.from(values)], {
      colouring: parseColormap(JSON.stringify(given)),
    });
    for (const [i, colour] of colours.entries())
      assert.deepEqual([...pixels.subarray(4 * i, 4 * i + 4)], colour, `${values[i]}`);
  });

test('an unusable colormap is refused with a reason', () => {
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
  fail('{"1": [1, 2, -1]}', /the colour/);
  fail('{"1": [1, 2, 0.5]}', /the colour/);
  fail('{"1": [1, 2, 3, 4, 5]}', /the colour/);
  fail('{"1": "x#fff"}', /the colour/);
  fail('{"1": "#fffff"}', /the colour/);
  fail('{"1": "#fffx"}', /the colour/);
  fail('{"1": 5}', /the colour 5/);
  fail('{" ": "#fff"}', /the value " "/);
  fail('[["ab"]]', /the entry/);
  fail('["ab"]', /the entry/);
  fail('[[[0, 1], "#fff", 3]]', /the entry/);
  fail('[[[1, 1], "#fff"]]', /the interval \[1,1\]/);
  fail('[[["0", 1], "#fff"]]', /the interval/);
  fail('[[[0, 1, 2], "#fff"]]', /the interval/);
  fail('[["01", "#fff"]]', /the interval/);
  fail(`{"1": "${'y'.repeat(100)}"}`, /the colour "y{50,}\.\.\.: write/);
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

test('the limits themselves are allowed', () => {
  assert.equal(parseColourFormula('gamma r 2, '.repeat(8), 3).length, 8);
  assert.equal(parseColourFormula('gamma r 2'.padEnd(500), 3).length, 1);
  assert.deepEqual(parseColourFormula(' , sigmoidal rgb  3 ,, 1', 3), [
    { kind: 'sigmoidal', planes: [0, 1, 2], contrast: 3, bias: 1 },
  ]);
  assert.deepEqual(parseColourFormula('gamma 321r 2', 3), [{ kind: 'gamma', planes: [2, 1, 0], gamma: 2 }]);
  const many = Object.fromEntries(Array.from({ length: 1024 }, (_, i) => [i, '#fff']));
  assert.equal(parseColormap(JSON.stringify(many)).kind, 'values');
  assert.equal(parseColormap('{"1": "#fff"}'.padEnd(16_384)).kind, 'values');
});

/** Red, green, blue and opacity of a value. */
const shown = (value: number, colours: unknown) => [
  ...renderRgba([Float64Array.of(value)], { colouring: parseColormap(JSON.stringify(colours)) }),
];

test('colours are written in four ways, and the last of overlapping intervals counts', () => {
  const colours = { 1: '#fa3', 2: '#fa38', 3: '#F1a23f', 4: '#f1a23f80', 5: [1, 2, 3], 6: [0, 255, 3, 4] };
  assert.deepEqual(shown(1, colours), [0xff, 0xaa, 0x33, 255]);
  assert.deepEqual(shown(2, colours), [0xff, 0xaa, 0x33, 0x88]);
  assert.deepEqual(shown(3, colours), [0xf1, 0xa2, 0x3f, 255]);
  assert.deepEqual(shown(4, colours), [0xf1, 0xa2, 0x3f, 0x80]);
  assert.deepEqual(shown(5, colours), [1, 2, 3, 255]);
  assert.deepEqual(shown(6, colours), [0, 255, 3, 4]);
  assert.deepEqual(shown(1.5, colours), [0, 0, 0, 0]);
  const intervals = [
    [
      [0, 10],
      [1, 1, 1],
    ],
    [
      [5, 7],
      [2, 2, 2],
    ],
    [
      [20, 30],
      [3, 3, 3],
    ],
  ];
  const expected: [number, number][] = [
    [-1, 0],
    [0, 1],
    [4.9, 1],
    [5, 2],
    [6.9, 2],
    [7, 1],
    [10, 0],
    [15, 0],
    [20, 3],
    [30, 0],
  ];
  for (const [value, red] of expected) assert.equal(shown(value, intervals)[0], red, `${value}`);
});

test('exactly the keys 0 to 255 are a ramp for values truncated to integers', () => {
  const grey = (keys: number[]) =>
    Object.fromEntries(keys.map((key) => [key, [key % 256, key % 256, key % 256, 255]]));
  const keys = Array.from({ length: 256 }, (_, i) => i);
  const ramp = grey(keys);
  const expected: [number, number[]][] = [
    [7.9, [7, 7, 7, 255]],
    [-0.9, [0, 0, 0, 255]],
    [-1, [0, 0, 0, 0]],
    [255.9, [255, 255, 255, 255]],
    [256, [0, 0, 0, 0]],
  ];
  for (const [value, colour] of expected) assert.deepEqual(shown(value, ramp), colour, `${value}`);
  // With one more key, or a different one, they are colours of exact values.
  for (const other of [[...keys, 256], [...keys.slice(1), 256], keys.slice(1)])
    assert.deepEqual(shown(7.9, grey(other)), [0, 0, 0, 0]);
});

test('planes are stretched to 0 to 255, a single plane is grey, and a pixel without a value is transparent', () => {
  const planes = [
    Float64Array.of(0, 5, 10, NaN, -3, 99),
    Float64Array.of(100, 151, 200, 150, 100, 200),
    Float64Array.of(0, 1, 2, 1, 0, 2),
  ];
  const ranges = [
    [0, 10],
    [100, 200],
    [0, 2],
  ] as const;
  const grey = renderRgba(planes.slice(0, 1), { ranges: [ranges[0]] });
  const levels = [0, 128, 255, 0, 0, 255];
  assert.deepEqual(
    [...grey],
    levels.flatMap((level, i) => (i === 3 ? [0, 0, 0, 0] : [level, level, level, 255])),
  );
  const colours = renderRgba(planes, { ranges: [...ranges] });
  assert.deepEqual([...colours.subarray(4, 8)], [128, 130, 128, 255]);
  assert.deepEqual([...colours.subarray(16, 24)], [0, 0, 0, 255, 255, 255, 255, 255]);
  const formula = parseColourFormula('gamma r 2', 3);
  const curved = renderRgba(planes, { ranges: [...ranges], formula });
  // The square root of 0.5.
  assert.deepEqual([...curved.subarray(4, 8)], [180, 130, 128, 255]);
  assert.deepEqual([...curved.subarray(8, 12)], [255, 255, 255, 255]);
  assert.deepEqual([...curved.subarray(16, 20)], [0, 0, 0, 255]);
  assert.ok(isTransparent(grey));
  assert.ok(!isTransparent(grey.subarray(0, 12)));
});

test('images encode the pixels in their format', async () => {
  const pixels = Uint8Array.from([
    255, 0, 0, 255, 0, 0, 255, 255, 0, 0, 0, 0, 0, 255, 0, 255, 9, 9, 9, 255, 0, 0, 0, 255,
  ]);
  const decode = async (format: ImageFormat, opacity?: boolean) => {
    const bytes = await encodeImage(pixels, 3, 2, format, opacity);
    const { data, info } = await sharp(bytes).raw().toBuffer({ resolveWithObject: true });
    const { format: found } = await sharp(bytes).metadata();
    return { data: [...data], channels: info.channels, found, size: [info.width, info.height] };
  };
  const plain = [...pixels].filter((_, i) => i % 4 !== 3);
  assert.deepEqual(await decode('png'), { data: [...pixels], channels: 4, found: 'png', size: [3, 2] });
  assert.deepEqual(await decode('png', false), { data: plain, channels: 3, found: 'png', size: [3, 2] });
  const webp = await decode('webp');
  assert.deepEqual([webp.found, webp.channels], ['webp', 4]);
  assert.equal((await decode('webp', false)).channels, 3);
  const jpeg = await decode('jpeg');
  assert.deepEqual([jpeg.found, jpeg.channels], ['jpeg', 3]);
});
