import assert from 'node:assert/strict';
import { test } from 'node:test';
import { warningLines } from '../../src/cli/output.js';

test('a warning of many scenes or bands is told once', () => {
  const band = (number: number) =>
    `the MTL has no calibration for band ${number}; its stored numbers are kept`;
  const copy = (name: string) => `${name} is a copy at 20 m; its file at 10 m is not there`;
  const scenes = [
    { id: 'a', warnings: [band(1), band(2), band(3), 'no MTL file'] },
    { id: 'b', warnings: ['no MTL file'] },
    { id: 'c', warnings: [copy('B02'), copy('B8A'), 'no MTL file'] },
    { id: 'd', warnings: [] },
  ];
  assert.deepEqual(warningLines(scenes), [
    `a: ${band(1)} (and 2 more like it)`,
    'a and 2 others: no MTL file',
    `c: ${copy('B02')} (and 1 more like it)`,
  ]);
  assert.deepEqual(warningLines([]), []);
});
