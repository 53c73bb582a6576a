/** Colours of codes: which bands hold codes, and the colour of each code. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseExpression } from '../../src/expressions/parser.js';
import { classColormap, codeColours, colormapLookup, colourOfCode } from '../../src/imagery/colormaps.js';
import type { BandRecord, GroupRecord, TileRecord } from '../../src/storage/index.js';

const band = (name: string, more: Partial<BandRecord> = {}): BandRecord => ({
  ...{ name, scale: 1, offset: 0, validPercent: 100 },
  ...more,
});

function group(name: string, bands: BandRecord[], more: Partial<GroupRecord> = {}): GroupRecord {
  return {
    ...{
      name,
      file: name,
      role: 'data',
      dataType: 'uint8',
      width: 8,
      height: 6,
      nodata: 0,
      bytes: 1,
      crc32: 1,
    },
    bands,
    ...more,
  };
}

function legend(groups: GroupRecord[], expressions: string[], codes: number[], collection = 'a') {
  const tile = { collection, groups } as unknown as TileRecord;
  return classColormap(tile, expressions.map(parseExpression), Float64Array.from(codes));
}

/** The colour of a code, RRGGBB. */
const colour = (found: ReturnType<typeof legend>, code: number) => colormapLookup(found!)(code) >>> 8;

test('a byte band with few values and without factor and colour holds codes, each with its own colour', () => {
  const codes = [group('10m', [band('x'), band('y')])];
  const found = legend(codes, ['y'], [1, 7]);
  for (const code of [0, 1, 7, 11, 12, 255]) assert.equal(colour(found, code), colourOfCode(code));
  assert.notEqual(colourOfCode(1), colourOfCode(2));
  assert.equal(colourOfCode(12), colourOfCode(0));
  assert.equal(colormapLookup(found!)(1) & 255, 255, 'opaque');
  // Any of its names is accepted.
  assert.ok(legend(codes, ['_10m_b2'], [1]) === undefined);
  assert.ok(legend(codes, ['10m_b2'], [1]));
  assert.ok(legend([group('a-b', [band('x')])], ['a_b_b1'], [1]));
  assert.equal(legend(codes, ['10m_b3'], [1]), undefined);
  assert.equal(legend(codes, ['z'], [1]), undefined);
});

test('measurements have no legend', () => {
  const one = (more: Partial<BandRecord>, of: Partial<GroupRecord> = {}) =>
    legend([group('10m', [band('x', more)], of)], ['x'], [1]);
  assert.ok(one({}));
  assert.equal(one({ scale: 2 }), undefined);
  assert.equal(one({ offset: 1 }), undefined);
  assert.equal(one({ commonName: 'red' }), undefined);
  assert.equal(one({}, { dataType: 'uint16' }), undefined);
  const codes = [group('10m', [band('x'), band('y')])];
  assert.equal(legend(codes, ['x', 'y'], [1]), undefined);
  assert.equal(legend(codes, ['x + 1'], [1]), undefined);
  assert.equal(legend([group('10m', [band('x'), band('y', { scale: 3 })])], ['x'], [1]), undefined);
  const numbers = Array.from({ length: 33 }, (_, i) => i);
  assert.equal(legend(codes, ['x'], numbers), undefined);
  assert.ok(legend(codes, ['x'], numbers.slice(1)));
  assert.ok(legend(codes, ['x'], [...numbers.slice(1), 5, 5, 5]));
});

test('the mask and the classes of land cover have meaningful colours', () => {
  const groups = [
    group('30m', [band('class')]),
    group('mask', [band('mask')], { role: 'mask', dataType: 'uint16' }),
  ];
  const mask = legend(groups, ['mask'], [1]);
  const [clear, cloud] = [1, 2].map((code) => colour(mask, code));
  assert.equal(clear, 0x6fa55b);
  assert.equal(cloud, 0xffffff);
  assert.equal(colormapLookup(mask!)(0), 0, 'no data is transparent');
  // Open water and evergreen forest, as the National Land Cover Database draws them.
  const cover = legend(groups, ['class'], [11, 42], 'nlcd');
  assert.deepEqual(
    [11, 42].map((code) => colour(cover, code)),
    [0x466b9f, 0x1c5f2c],
  );
  assert.equal(colour(legend(groups, ['class'], [11, 13], 'nlcd'), 11), colourOfCode(11));
  assert.equal(colour(legend(groups, ['class'], [11], 'other'), 11), colourOfCode(11));
});

test('a colour table of a TIFF has 256 reds, greens and blues of 16 bits', () => {
  const table = codeColours();
  assert.equal(table.length, 768);
  for (const code of [0, 5, 255]) {
    const bytes = [table[code]!, table[256 + code]!, table[512 + code]!].map((value) => value / 257);
    assert.equal((bytes[0]! << 16) | (bytes[1]! << 8) | bytes[2]!, colourOfCode(code));
  }
});
