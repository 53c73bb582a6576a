/** The header of NumPy files, compared with its specification (NEP 1). */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { npyHead } from '../../src/derive/tensor.js';
import type { DataType } from '../../src/raster/index.js';

test('the header of a NumPy file has the type, the shape and a length that is a multiple of 64 bytes', () => {
  const types: Record<DataType, string> = {
    ...{ uint8: '|u1', int8: '|i1', uint16: '<u2', int16: '<i2' },
    ...{ uint32: '<u4', int32: '<i4', float32: '<f4', float64: '<f8' },
  };
  const lengths = new Set<number>();
  for (const [type, descr] of Object.entries(types))
    for (let digits = 1; digits < 70; digits++) {
      const shape =
        digits % 3 === 0 ? [digits] : [10 ** (digits % 15), ...Array(Math.floor(digits / 3)).fill(7)];
      const head = npyHead(type as DataType, shape);
      assert.equal(head.length % 64, 0);
      lengths.add(head.length);
      assert.equal(head.subarray(0, 8).toString('latin1'), '\x93NUMPY\x01\x00');
      assert.equal(head.readUInt16LE(8), head.length - 10);
      const text = head.subarray(10).toString('latin1');
      const tuple = shape.length === 1 ? `(${shape[0]},)` : `(${shape.join(', ')})`;
      const dictionary = `{'descr': '${descr}', 'fortran_order': False, 'shape': ${tuple}, }`;
      assert.equal(text.trimEnd(), dictionary);
      assert.ok(text.endsWith('\n'));
      // The padding is minimal and contains at least the end of the line.
      assert.ok(head.length - 10 - dictionary.length >= 1 && head.length - 10 - dictionary.length <= 64);
    }
  assert.ok(lengths.size > 1);
});
