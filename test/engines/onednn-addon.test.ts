/** The oneDNN addon: its cache, invalid arguments, and its build. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { copyFile, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { FORWARD } from '../../src/engines/compute-primitives/primitives.js';
import { loadOneDnn, type OneDnnAddon } from '../../src/engines/load.js';
import { atEnd } from '../support/at-end.js';
import { loopsContract } from './compute-primitives-contract.js';

let dnn: OneDnnAddon | undefined;
let skip: string | false = false;
try {
  dnn = loadOneDnn();
} catch (error) {
  skip = (error as Error).message;
}

loopsContract('the loops of the addon', () => dnn!, skip);

test('more geometries than the cache holds are correct when they are used again', { skip }, () => {
  const run = (width: number) => {
    const x = new Float32Array(width).fill(2);
    const y = new Float32Array(Math.ceil(width / 2));
    dnn!.convolve(
      FORWARD,
      Int32Array.of(1, 1, width, 1, 1, 1, 1, 1, 2, 1, 1, 0, 0, 0, 0),
      x,
      Float32Array.of(3),
      y,
      null,
    );
    assert.ok(y.every((value) => value === 6));
  };
  for (let round = 0; round < 2; round++) for (let width = 1; width <= 600; width++) run(width);
});

test('arrays of the wrong size are refused, and nothing is written', { skip }, () => {
  const geometry = Int32Array.of(1, 4, 4, 1, 1, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1);
  const [x, filter, y] = [new Float32Array(16), new Float32Array(9), new Float32Array(16).fill(7)];
  const convolve = (...[direction, g, ...rest]: Parameters<OneDnnAddon['convolve']>) =>
    dnn!.convolve(direction, g, ...rest);
  assert.throws(
    () => convolve(FORWARD, geometry, x.subarray(1), filter, y, null),
    /15 values in place of 16/,
  );
  assert.throws(
    () => convolve(FORWARD, geometry, x, filter, y, new Float32Array(2)),
    /2 values in place of 1/,
  );
  assert.throws(
    () => convolve(FORWARD, geometry.subarray(1), x, filter, y, null),
    /14 values in place of 15/,
  );
  assert.throws(() => convolve(3, geometry, x, filter, y, null), /no such direction/);
  assert.throws(
    () =>
      convolve(
        FORWARD,
        Int32Array.from(geometry, (n, i) => (i === 5 ? 9 : n)),
        x,
        filter,
        y,
        null,
      ),
    /filter is larger/,
  );
  assert.throws(
    () =>
      convolve(
        FORWARD,
        Int32Array.from(geometry, (n, i) => (i === 7 ? 0 : n)),
        x,
        filter,
        y,
        null,
      ),
    /sizes of a convolution are 1 or more/,
  );
  assert.throws(() => dnn!.multiply(Int32Array.of(2, 2, 2, 0, 0), x, filter, y), /16 values in place of 4/);
  assert.throws(() => dnn!.columnSums(4, 4, [] as never, y.subarray(4, 8)), /a typed array is wanted/);
  assert.ok(y.every((value) => value === 7));
});

test('an installation continues without the addon, and reports what is missing', async (t) => {
  // A copy, since what cannot be built is removed; where it finds the packages of this installation.
  const native = fileURLToPath(new URL('../../../native/', import.meta.url));
  const copy = await mkdtemp(fileURLToPath(new URL('../../native-', import.meta.url)));
  atEnd(t, () => rm(copy, { recursive: true }));
  for (const file of ['build.mjs', 'onednn.cc']) await copyFile(join(native, file), join(copy, file));
  const build = (...flags: string[]) =>
    spawnSync(process.execPath, [join(copy, 'build.mjs'), ...flags], {
      encoding: 'utf8',
      env: { ...process.env, CXX: 'no-such-compiler' },
    });
  const { status, stderr } = build();
  assert.equal(status, 0);
  assert.match(stderr, /no-such-compiler(.|\n)*apt-get install g\+\+ libdnnl-dev/);
  await writeFile(join(copy, 'build', 'onednn.node'), 'of an older version');
  assert.equal(build('--required').status, 1);
  assert.deepEqual(await readdir(join(copy, 'build')), []);
});
