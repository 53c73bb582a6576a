/** Limits of maps: refused requests, and computations in worker threads. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { WorkerPool } from '../../src/async/index.js';
import { parseExpressions } from '../../src/expressions/parser.js';
import { parseColormap } from '../../src/imagery/colormaps.js';
import { RenderQueue } from '../../src/imagery/render.js';
import { renderStyleBytes } from '../../src/imagery/style.js';
import type { TilewrightNode } from '../../src/node.js';
import { ingest, testNode, tilesOf } from '../support/node.js';
import { bytesOf, writeRaster } from '../support/rasters.js';
import { tempFolder } from '../support/temp.js';
import { mapTileAt, nodeWithScenes, pictureOf } from './maps.js';

const SCENE = { datetime: '2024-06-01T10:00:00Z', cloud: 0, edge: 100, seed: 2 };
const PLACE = [15.02, 47.843] as const;

async function refusal(node: TilewrightNode, url: string) {
  const answer = await node.server.inject(url);
  const { code, detail } = answer.json();
  return { status: answer.statusCode, code, detail };
}

/** Records the kinds of the tasks of worker threads. */
function tasksOf(t: TestContext): Set<string> {
  const kinds = new Set<string>();
  type Pool = WorkerPool<{ kind: string }, unknown>;
  const run = WorkerPool.prototype.run as Pool['run'];
  t.mock.method(WorkerPool.prototype, 'run', function (this: Pool, task: { kind: string }, options) {
    kinds.add(task.kind);
    return run.call(this, task, options);
  } satisfies typeof run);
  return kinds;
}

test('long computations run in worker threads and give the same values', async (t) => {
  const { node } = await nodeWithScenes(t, [SCENE]);
  const kinds = tasksOf(t);
  const { x, y } = mapTileAt(17, ...PLACE);
  const image = (z: number, column: number, row: string, query: string) =>
    pictureOf(node, `/xyz/test/${z}/${column}/${row}.png?rescale=0,0.3&${query}`);

  await t.test('expressions', async () => {
    const plain = await image(17, x, `${y}`, 'expression=red');
    assert.ok(!kinds.has('evaluate'));
    const long = await image(17, x, `${y}`, `expression=red${'*1'.repeat(99)}`);
    assert.ok(kinds.has('evaluate'));
    assert.deepEqual(long.pixels, plain.pixels);
  });

  await t.test('kernels', async () => {
    const query = 'expression=red&resampling=lanczos';
    const quarter = await image(18, 2 * x, `${2 * y}`, query);
    assert.ok(!kinds.has('resample'));
    const { pixels } = await image(17, x, `${y}@2x`, query);
    assert.ok(kinds.has('resample'));
    // The same pixels of the map, with weights that differ by rounding only.
    let largest = 0;
    for (let i = 0; i < quarter.pixels.length; i++) {
      const [row, column] = [Math.floor(i / 1024), i % 1024];
      largest = Math.max(largest, Math.abs(quarter.pixels[i] - pixels[row * 2048 + column]));
    }
    assert.ok(largest <= 1, `${largest}`);
  });

  await t.test('operations are counted over all expressions', async () => {
    const one = Array(51).fill('red').join('*');
    const url = `/xyz/test/17/${x}/${y}.png?algorithm=std&expression=${one};${one};${one}`;
    const { status, code, detail } = await refusal(node, url);
    assert.deepEqual([status, code], [400, 'TW_IMAGERY_EXPRESSION']);
    assert.match(detail, /more than 100 operations in all expressions/);
  });

  await t.test('the smallest zoom accounts for pixels larger than a map tile', async () => {
    const at = (z: number, tail = '') => {
      const map = mapTileAt(z, ...PLACE);
      return `/xyz/test/${z}/${map.x}/${map.y}${tail}.png`;
    };
    const smallest = async (query: string) =>
      (await node.server.inject(`/xyz/test/tilejson.json?${query}`)).json().minzoom;
    const shade = 'assets=red&algorithm=hillshade';
    const wide = `${shade}&algorithm_params=${encodeURIComponent('{"buffer":99}')}`;
    assert.equal(await smallest(''), 12);
    assert.equal(await smallest(shade), 12);
    assert.equal(await smallest('buffer=99&tile_scale=2'), 12);
    for (const query of ['buffer=99', wide]) {
      assert.equal(await smallest(query), 13);
      const { status, code, detail } = await refusal(node, `${at(12)}?${query}`);
      assert.deepEqual([status, code], [400, 'TW_IMAGERY_ZOOM']);
      assert.match(detail, /zoom in to 13/);
    }
    for (const url of [`${at(12)}?${shade}`, `${at(12, '@2x')}?buffer=99`, `${at(13)}?buffer=99`])
      assert.equal((await node.server.inject(url)).statusCode, 200, url);
  });
});

test('an image of too many values is refused with its sizes', async (t) => {
  const folder = await tempFolder(t);
  const node = await testNode(t, join(folder, 'data'));
  const bands = bytesOf(20, 64 * 64, (i, band) => 1 + ((i + band) % 200));
  const href = await writeRaster(join(folder, 'bands.tif'), { dataType: 'uint8', bands });
  await ingest(node, { href, collection: 'bands', datetime: '2024-06-01T10:00:00Z', precision: 6 });
  const { groups } = (await tilesOf(node))[0];
  const [{ name }] = groups;
  const sums = Array.from({ length: 16 }, (_, i) =>
    Array.from({ length: 5 }, (_, j) => `${name}_b${1 + ((i + j) % 20)}`).join('-'),
  ).join(';');
  const map = mapTileAt(15, 15.003, 47.85);
  const url = `/xyz/bands/15/${map.x}/${map.y}@2x.png?algorithm=std&rescale=0,1&expression=${sums}`;
  assert.equal((await node.server.inject(url)).statusCode, 200);
  const { status, code, detail } = await refusal(node, `${url}&buffer=99`);
  assert.deepEqual([status, code], [400, 'TW_IMAGERY_TOO_MANY_VALUES']);
  assert.match(detail, /^710 x 710 pixels of 20 bands and 16 expressions are more than 16000000 values/);
});

test('an image that nobody waits for any more is not drawn, and leaves its place to others', async () => {
  const queue = new RenderQueue(1, 2);
  let end = () => {};
  const first = queue.run(() => new Promise<void>((resolve) => (end = resolve)));
  const stop = new AbortController();
  let drawn = 0;
  const cancelled = queue.run(async () => drawn++, stop.signal);
  const next = queue.run(async () => drawn++);
  stop.abort(new Error('the client has gone'));
  await assert.rejects(cancelled, /the client has gone/);
  const late = queue.run(async () => drawn++);
  end();
  await Promise.all([first, next, late]);
  assert.equal(drawn, 2);
});

test('images beyond the limit of concurrent renders wait, and images beyond the limit of the queue are refused', async () => {
  const queue = new RenderQueue(2, 2);
  const ends: (() => void)[] = [];
  const begun: number[] = [];
  const draw = (number: number) =>
    queue.run(async () => {
      begun.push(number);
      await new Promise<void>((end) => ends.push(end));
      if (number === 0) throw new Error('failed');
      return number;
    });
  const failed = assert.rejects(draw(0), /failed/);
  const others = [1, 2, 3].map(draw);
  await assert.rejects(draw(4), { code: 'TW_IMAGERY_BUSY', status: 429 });
  await turn();
  assert.deepEqual(begun, [0, 1]);
  ends.shift()!();
  await failed;
  await turn();
  assert.deepEqual(begun, [0, 1, 2]);
  ends.shift()!();
  assert.equal(await others[0], 1);
  await turn();
  assert.deepEqual(begun, [0, 1, 2, 3]);
  for (const end of ends.splice(0)) end();
  assert.deepEqual(await Promise.all(others), [1, 2, 3]);
  const last = draw(5);
  await turn();
  ends.shift()!();
  assert.equal(await last, 5, 'there is room again');
});

test('the cache counts renders with the size of their content', () => {
  const look = { resampling: 'nearest', opacity: true } as const;
  const short = renderStyleBytes({ ...look, expressions: parseExpressions(['red']) });
  assert.ok(short >= 1000 && short < 2000, `${short}`);
  const expressions = parseExpressions([Array(100).fill('red').join('*')]);
  assert.ok(renderStyleBytes({ ...look, expressions }) > 10_000);
  const entries = Array.from({ length: 1024 }, (_, i) => [`${i}`, '#fff'] as const);
  const colouring = parseColormap(JSON.stringify(Object.fromEntries(entries)));
  assert.ok(renderStyleBytes({ ...look, expressions: [], colouring }) > 1024 * 16);
});
