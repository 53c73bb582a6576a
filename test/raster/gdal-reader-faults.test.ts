import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import fc from 'fast-check';
import { TilewrightError } from '../../src/errors.js';
import { type GdalRun, runGdal } from '../../src/raster/formats/gdal-process.js';
import {
  encodeCog,
  openRaster,
  type RasterHeader,
  readRaster,
  readRowsOfRasters,
  readWindow,
} from '../../src/raster/index.js';
import { atEnd } from '../support/at-end.js';
import { gdal, needsGdal, temporaryFolder } from './gdal.js';
import { image } from './images.js';

const originalPath = process.env.PATH;
const CALL = { args: [], path: 'a.img', format: 'Erdas' };
const api = new URL('../../src/raster/index.js', import.meta.url).href;

function raster(folder: string, driver: string, size = 200): string {
  const tif = join(folder, 'a.tif');
  writeFileSync(tif, encodeCog(image('uint16', size, size)));
  const path = join(folder, driver === 'HFA' ? 'a.img' : 'a.jp2');
  gdal('gdal_translate', '-q', '-of', driver, tif, path);
  return path;
}

const whole = ({ width, height }: RasterHeader) => ({ column: 0, row: 0, width, height });

/** Puts a program of that name before the real one on PATH; it leaves a folder named by its process id. */
function fake(
  t: TestContext,
  name: 'gdalinfo' | 'gdal_translate',
  body: string,
): { pid(): Promise<number>; pids(count: number): Promise<number[]> } {
  const folder = temporaryFolder(t);
  const pids = join(folder, 'pids');
  mkdirSync(pids);
  const script = `#!/bin/sh\nmkdir '${pids}'/$$\nPATH='${originalPath}'\n${body}\n`;
  writeFileSync(join(folder, name), script);
  chmodSync(join(folder, name), 0o755);
  process.env.PATH = `${folder}${delimiter}${originalPath}`;
  atEnd(t, () => {
    process.env.PATH = originalPath;
  });
  const started = async (count: number) => {
    for (;;) {
      const found = readdirSync(pids);
      if (found.length >= count) return found.map(Number);
      await sleep(10);
    }
  };
  return { pids: started, pid: async () => (await started(1))[0]! };
}

/** Waits until a process has ended; fails after a while. */
async function gone(pid: number): Promise<void> {
  for (let i = 0; i < 1000; i++) {
    if (!runs(pid)) return;
    await sleep(20);
  }
  assert.fail(`process ${pid} still runs`);
}

/** A child of a thread that has ended stays listed as a zombie, because nothing reads its exit code. */
function runs(pid: number): boolean {
  try {
    process.kill(pid, 0);
  } catch {
    return false;
  }
  try {
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return existsSync('/proc/self') ? existsSync(`/proc/${pid}`) : true;
  }
}

const failure = (read: Promise<unknown>): Promise<TilewrightError> =>
  read.then(
    () => assert.fail('it was read'),
    (error) => {
      assert.ok(error instanceof TilewrightError, String(error));
      return error;
    },
  );

for (const driver of ['JP2OpenJPEG', 'HFA']) {
  test(`a ${driver} file truncated at any byte is refused`, needsGdal, async (t) => {
    const path = raster(temporaryFolder(t), driver);
    const bytes = readFileSync(path);
    for (const part of [0.01, 0.2, 0.5, 0.9, 0.99]) {
      writeFileSync(path, bytes.subarray(0, Math.floor(bytes.length * part)));
      const error = await failure(readRaster(path));
      assert.match(error.code, /^TW_RASTER_(GDAL_FAILED|NO_CRS|UNSUPPORTED)$/);
      assert.ok(error.message.includes(path));
    }
  });
}

test("a file that only starts like a known format is refused with GDAL's message", needsGdal, async (t) => {
  const path = join(temporaryFolder(t), 'a.jp2');
  for (const start of [
    Buffer.from('0000000c6a5020200d0a870a', 'hex'),
    Buffer.from('0e031301', 'hex'),
    Buffer.from('EHFA_HEADER_TAG\0'),
    Buffer.from('CDF\x01'),
  ]) {
    writeFileSync(path, Buffer.concat([start, Buffer.alloc(1000, 7)]));
    const error = await failure(openRaster(path));
    assert.equal(error.code, 'TW_RASTER_GDAL_FAILED');
    assert.match(error.message, /gdalinfo ended with.* and said: /);
  }
});

test('a damaged file is either read or refused', needsGdal, async (t) => {
  const folder = temporaryFolder(t);
  const originals = [raster(folder, 'JP2OpenJPEG', 60), raster(folder, 'HFA', 60)].map((path) =>
    readFileSync(path),
  );
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(...originals),
      fc.array(fc.tuple(fc.nat(), fc.integer({ min: 0, max: 255 })), { minLength: 1, maxLength: 8 }),
      async (original, damages) => {
        const bytes = Buffer.from(original);
        // Beyond the signature; half of the damage hits the first boxes and tables.
        for (const [at, value] of damages) bytes[20 + (at % (at % 2 ? 600 : bytes.length - 20))] = value;
        const path = join(folder, 'damaged');
        writeFileSync(path, bytes);
        await readRaster(path).catch((error) => assert.ok(error instanceof TilewrightError, String(error)));
      },
    ),
    { seed: 42, numRuns: 20 },
  );
});

test('impossible sizes are refused before anything is read', needsGdal, async (t) => {
  const path = raster(temporaryFolder(t), 'JP2OpenJPEG');
  const answer = (size: number[], block: number[], bands = 1) => {
    const band = { type: 'UInt16', block, metadata: {} };
    const geoTransform = [0, 1, 0, 0, 0, -1];
    const system = { wkt: 'GEOGCRS["WGS 84",ID["EPSG",4326]]', proj4: '+proj=longlat' };
    return JSON.stringify({ size, geoTransform, coordinateSystem: system, bands: Array(bands).fill(band) });
  };
  for (const [text, code] of [
    [answer([10, 10], [10, 10]), undefined],
    [answer([2 ** 25, 10], [10, 10]), 'TW_RASTER_UNSUPPORTED'],
    [answer([10, 10], [10, 10], 5000), 'TW_RASTER_UNSUPPORTED'],
    [answer([2 ** 20, 2 ** 20], [1024, 2 ** 20]), 'TW_RASTER_UNSUPPORTED'],
    [answer([10, 10], [0, 10]), 'TW_RASTER_UNSUPPORTED'],
    [answer([0, 10], [10, 10]), 'TW_RASTER_GDAL_FAILED'],
    [answer([1.5, 10], [10, 10]), 'TW_RASTER_GDAL_FAILED'],
    [answer([10], [10, 10]), 'TW_RASTER_GDAL_FAILED'],
    ['{"size":[1,1]}', 'TW_RASTER_GDAL_FAILED'],
    ['null', 'TW_RASTER_GDAL_FAILED'],
    ['this is no JSON', 'TW_RASTER_GDAL_FAILED'],
    ['', 'TW_RASTER_GDAL_FAILED'],
  ] as const) {
    fake(t, 'gdalinfo', `cat <<'END'\n${text}\nEND`);
    if (code === undefined) await openRaster(path);
    else assert.equal((await failure(openRaster(path))).code, code, text.slice(0, 200));
  }
});

test('too few or too many pixels, or other output, is an error', needsGdal, async (t) => {
  const header = await openRaster(raster(temporaryFolder(t), 'HFA'));
  for (const [body, words] of [
    ['exit 0', /0 of 200 rows/],
    ['gdal_translate "$@" | head -c 50000', /rows/],
    ['gdal_translate "$@"; head -c 400 /dev/zero', /more than 200 rows/],
    ['head -c 100000 /dev/zero', /something else than a TIFF/],
    ['head -c 100000 /dev/zero | tr "\\0" I', /something else than a TIFF/],
    ['echo broken >&2; exit 3', /exit code 3 and said: broken/],
    ['gdal_translate "$@"; echo "ERROR 1: tile 7 is missing" >&2', /tile 7 is missing/],
  ] as const) {
    fake(t, 'gdal_translate', body);
    const error = await failure(readWindow(header, [0], whole(header)));
    assert.equal(error.code, 'TW_RASTER_GDAL_FAILED');
    assert.match(error.message, words);
  }
});

/** Two files that are read by one call. */
async function twoFiles(t: TestContext) {
  const headers = [
    await openRaster(raster(temporaryFolder(t), 'HFA')),
    await openRaster(raster(temporaryFolder(t), 'JP2OpenJPEG')),
  ];
  const read = (signal?: AbortSignal) =>
    readRowsOfRasters(
      headers.map((header) => ({
        header,
        bands: [0],
        rowStart: 0,
        rowEnd: 200,
        into: [new Uint16Array(200 * 200)],
        firstRow: 0,
      })),
      signal,
    );
  return { paths: headers.map(({ path }) => path), read };
}

test('the error names the faulty one of several files', needsGdal, async (t) => {
  const { paths, read } = await twoFiles(t);
  const isSecond = 'case "$*" in *.jp2*)';
  for (const [body, at, words] of [
    ['exit 3', 0, /exit code 3/],
    [`${isSecond} echo broken >&2; exit 3;; esac; gdal_translate "$@"`, 1, /exit code 3 and said: broken/],
    [`${isSecond} kill -9 $$;; esac; gdal_translate "$@"`, 1, /signal SIGKILL/],
    ['echo "ERROR 1: a tile is missing" >&2; gdal_translate "$@"', 0, /a tile is missing/],
    [`gdal_translate "$@"; ${isSecond} echo "ERROR 1: a tile is missing" >&2;; esac`, 1, /a tile is missing/],
    [`${isSecond} exit 0;; esac; gdal_translate "$@"`, 1, /0 of 200 rows/],
    [`${isSecond} head -c 400 /dev/zero;; esac; gdal_translate "$@"`, 1, /something else than a TIFF/],
  ] as const) {
    fake(t, 'gdal_translate', body);
    const error = await failure(read());
    assert.equal(error.code, 'TW_RASTER_GDAL_FAILED');
    assert.match(error.message, words, body);
    assert.ok(error.message.includes(paths[at]!), `${body}: ${error.message}`);
  }
  process.env.PATH = originalPath;
  await read();
});

test('an aborted read of several files leaves no process', needsGdal, async (t) => {
  const { read } = await twoFiles(t);
  for (const [hangs, count] of [
    ['*.img*', 1],
    ['*.jp2*', 2],
  ] as const) {
    const body = `case "$*" in ${hangs}) exec sleep 100;; esac; gdal_translate "$@"`;
    const { pids } = fake(t, 'gdal_translate', body);
    const controller = new AbortController();
    const reading = read(controller.signal);
    const children = await pids(count);
    const reason = new Error('not needed any more');
    controller.abort(reason);
    await assert.rejects(reading, reason);
    for (const child of children) await gone(child);
  }
});

test('a process that is killed from outside fails its own call only', needsGdal, async (t) => {
  const header = await openRaster(raster(temporaryFolder(t), 'HFA'));
  const { pid } = fake(t, 'gdal_translate', 'exec sleep 100');
  const failed = failure(readWindow(header, [0], whole(header)));
  process.kill(await pid(), 'SIGKILL');
  const error = await failed;
  assert.equal(error.code, 'TW_RASTER_GDAL_FAILED');
  assert.match(error.message, /signal SIGKILL/);
  process.env.PATH = originalPath;
  await readWindow(header, [0], whole(header));
});

test('a process that hangs or never ends is killed at its limit', needsGdal, async (t) => {
  for (const [body, limits, words] of [
    ['exec sleep 100', { stallMs: 300 }, /TIMEOUT.*0\.3 s without output/],
    ['exec sleep 100', { totalMs: 300 }, /TIMEOUT.*0\.3 s\. /],
    ['while :; do echo x; done', { totalMs: 300 }, /TIMEOUT.*0\.3 s\. /],
    ['exec cat /dev/zero', { outputBytes: 1_000_000 }, /FAILED.*more than 1000000 bytes/],
  ] as const) {
    const { pid } = fake(t, 'gdalinfo', body);
    const drain = async () => {
      const run: GdalRun = { program: 'gdalinfo', calls: [CALL], limits };
      for await (const _ of runGdal(run));
    };
    const { code, message } = await failure(drain());
    assert.match(`${code}: ${message}`, words);
    await gone(await pid());
  }
});

test('an aborted read rejects with the reason, and its process is gone', needsGdal, async (t) => {
  const header = await openRaster(raster(temporaryFolder(t), 'HFA'));
  const { pid } = fake(t, 'gdal_translate', 'exec sleep 100');
  const controller = new AbortController();
  const read = readWindow(header, [0], whole(header), controller.signal);
  const child = await pid();
  const reason = new Error('not needed any more');
  controller.abort(reason);
  await assert.rejects(read, reason);
  await gone(child);
  await assert.rejects(readWindow(header, [0], whole(header), controller.signal), reason);
});

test('a process ends with the thread that started it', needsGdal, async (t) => {
  const path = raster(temporaryFolder(t), 'HFA');
  // A BigTIFF of one strip, and then a pixel now and then, for hours: the closed pipe ends it.
  const head = [
    ...['II+\\0\\010\\0\\0\\0', '\\020\\0\\0\\0\\0\\0\\0\\0', '\\1\\0\\0\\0\\0\\0\\0\\0'],
    ...['\\021\\1\\020\\0', '\\1\\0\\0\\0\\0\\0\\0\\0', '\\054\\0\\0\\0\\0\\0\\0\\0'],
  ];
  const { pid } = fake(t, 'gdal_translate', `printf '${head.join('')}'\nwhile printf xx; do sleep 0.1; done`);
  const code = `import('${api}').then((raster) => raster.readRaster(${JSON.stringify(path)}))`;
  const worker = new Worker(code, { eval: true, workerData: {} });
  const child = await pid();
  await worker.terminate();
  await gone(child);
});

test('a process ends with the process that started it', needsGdal, async (t) => {
  const path = raster(temporaryFolder(t), 'HFA');
  const { pid } = fake(t, 'gdal_translate', 'exec sleep 100');
  const code = `import('${api}').then((raster) => raster.readRaster(${JSON.stringify(path)}));
    process.stdin.once('data', () => process.exit());`;
  const node = spawn(process.execPath, ['-e', code], { stdio: ['pipe', 'inherit', 'inherit'] });
  const child = await pid();
  node.stdin.write('now');
  await gone(child);
});

test('a process receives only the environment variables that it needs', needsGdal, async (t) => {
  process.env.TILEWRIGHT_TEST_SECRET = 'secret';
  atEnd(t, () => {
    delete process.env.TILEWRIGHT_TEST_SECRET;
  });
  fake(t, 'gdalinfo', 'env');
  let text = '';
  const run: GdalRun = { program: 'gdalinfo', calls: [CALL] };
  for await (const chunk of runGdal(run)) text += Buffer.from(chunk).toString();
  assert.doesNotMatch(text, /secret/);
  assert.match(text, /GDAL_PAM_ENABLED=NO/);
});
