import assert from 'node:assert/strict';
import { test } from 'node:test';
import { formatBytes, listNearest, progressLine, warningLines } from '../../src/cli/output.js';
import { formatDuration } from '../../src/html/index.js';

test('a warning of many scenes or bands is printed once', () => {
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

test('warnings that differ in metres or percentages become one with a range', () => {
  const datum = (metres: number) => `positions may be off by ${metres} m`;
  const scenes = [15, 26, 10, 26].map((metres, i) => ({ id: `s${i}`, warnings: [datum(metres)] }));
  assert.deepEqual(warningLines(scenes), ['s0 and 3 others: positions may be off by 10 to 26 m']);
  assert.deepEqual(warningLines(scenes.slice(0, 1)), [`s0: ${datum(15)}`]);
  const band = (name: number, metres: number) => `band ${name} lies ${metres} m off`;
  assert.deepEqual(warningLines([{ id: 'a', warnings: [band(1, 3), band(2, 9)] }]), [
    'a: band 1 lies 3 to 9 m off (and 1 more like it)',
  ]);
  const cloud = (percent: string) => `${percent} % of the assessed pixels are cloud, above the target of 5 %`;
  assert.deepEqual(
    warningLines(['20.0', '7.5', '100.0'].map((percent) => ({ id: percent, warnings: [cloud(percent)] }))),
    [`20.0 and 2 others: ${cloud('7.5 to 100')}`],
  );
});

test('durations and sizes are rounded before they are split into units', () => {
  const durations = [0, 9.94, 9.96, 59.4, 59.6, 119.4, 119.6, 3599.6, 7199, 90_061].map(formatDuration);
  assert.deepEqual(
    durations.map((text) => text.replaceAll(' ', '')),
    ['0.0s', '9.9s', '10s', '59s', '1min0s', '1min59s', '2min0s', '1h0min', '2h0min', '25h1min'],
  );
  const sizes = [0, 999, 1000, 9949, 9951, 999_499, 999_500, 999_999, 1.5e9, 999.9e15].map(formatBytes);
  assert.deepEqual(
    sizes.map((text) => text.replaceAll(' ', '')),
    ['0B', '999B', '1.0kB', '9.9kB', '10kB', '999kB', '1.0MB', '1.0MB', '1.5GB', '1000PB'],
  );
});

test('progress works on a terminal that reports 0 columns', (t) => {
  const lines: string[] = [];
  const stderr = { isTTY: true, columns: 0, write: (text: string) => lines.push(text) };
  t.mock.getter(process, 'stderr', () => stderr);
  const line = progressLine('tiles');
  const message = 'x'.repeat(200);
  line.update({ message, progress: 10, tiles: { total: 2, done: 1, failed: 0, skipped: 0 } });
  assert.equal(lines.length, 1);
  assert.match(lines[0]!, /1 of 2 tiles, .* left: x+$/);
  assert.equal(lines[0]!.length, '\r\x1b[2K'.length + 79);
});

test('counts and percentage of a line of progress agree, and a remaining time needs a tenth of the work', (t) => {
  const lines: string[] = [];
  const stderr = { isTTY: true, columns: 200, write: (text: string) => lines.push(text) };
  t.mock.getter(process, 'stderr', () => stderr);
  const cases: [
    done: number,
    failed: number,
    skipped: number,
    total: number,
    progress: number,
    counts: boolean,
  ][] = [
    [20, 0, 0, 80, 79, false],
    [6, 0, 0, 5139, 99, false],
    [80, 0, 0, 80, 25, false],
    [0, 0, 0, 80, 30, false],
    [0, 0, 0, 1, 40, true],
    [3, 0, 0, 10, 45, true],
    [63, 0, 0, 80, 79, true],
    [5000, 60, 0, 5139, 98, true],
    [4, 0, 75, 80, 80, true],
    [50, 0, 50, 200, 9, false],
    [1, 0, 0, 100, 1, true],
    [9, 0, 0, 100, 9, true],
    [10, 0, 0, 100, 10, true],
  ];
  for (const [done, failed, skipped, total, progress, counts] of cases) {
    lines.length = 0;
    progressLine('tiles').update({ message: '', progress, tiles: { total, done, failed, skipped } });
    const [, finished, all] = / ?(\d+) of (\d+) tiles/.exec(lines[0]!) ?? [];
    assert.equal(finished !== undefined, counts, lines[0]);
    if (counts) assert.deepEqual([Number(finished), Number(all)], [done + failed + skipped, total]);
    assert.ok(lines[0]!.includes(`${progress} %`), lines[0]);
    assert.equal(lines[0]!.includes(' left'), progress >= 10, lines[0]);
  }
});

test('of many names the nearest are listed, and the others counted', () => {
  const years = Array.from({ length: 24 }, (_, i) => `naip-${2000 + i}`);
  assert.equal(listNearest('naip-2023', years.slice(0, 20)), years.slice(0, 20).join(', '));
  const text = listNearest('feilds', [...years, 'fields']);
  assert.match(text, /^fields, naip-/);
  assert.match(text, / and 5 more$/);
  assert.equal(text.split(', ').length, 20);
});
