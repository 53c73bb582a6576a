/** Pooling and its gradients against plain loops. */
import assert from 'node:assert/strict';
import { it } from 'node:test';
import fc from 'fast-check';
import { near, one, type Tested, whole } from './contract-values.js';

/** Two images of 8 x 6 pixels, and windows that may reach over edges but always have a pixel inside. */
interface Pools {
  size: [number, number];
  stride: [number, number];
  /** True for a padding of one pixel less than a window at the top and at the left. */
  isPadded: boolean;
  channels: number;
  seed: number;
}

const BATCH = 2;
const [HEIGHT, WIDTH] = [8, 6];

const pooling: fc.Arbitrary<Pools> = fc.record({
  size: one(fc.integer({ min: 1, max: 3 })),
  stride: one(fc.integer({ min: 1, max: 3 })),
  isPadded: fc.boolean(),
  channels: fc.integer({ min: 1, max: 9 }),
  seed: fc.nat(1000),
});

function outputsOf({ stride }: Pools): [rows: number, columns: number] {
  return [Math.floor((HEIGHT - 1) / stride[0]) + 1, Math.floor((WIDTH - 1) / stride[1]) + 1];
}

function pooled(pool: Pools): { x: Float32Array; dy: Float32Array; geometry: Int32Array } {
  const { size, stride, isPadded, channels, seed } = pool;
  const outputs = outputsOf(pool);
  const padding = size.map((length) => (isPadded ? length - 1 : 0));
  return {
    x: whole(BATCH * HEIGHT * WIDTH * channels, seed),
    dy: whole(BATCH * outputs[0] * outputs[1] * channels, seed + 1),
    geometry: Int32Array.of(BATCH, HEIGHT, WIDTH, channels, ...outputs, ...size, ...stride, ...padding),
  };
}

/** Indexes of the input values in the window of an output. */
function windowOf(pool: Pools, at: number): number[] {
  const { size, stride, isPadded, channels } = pool;
  const before = (axis: 0 | 1) => (isPadded ? size[axis] - 1 : 0);
  const [rows, columns] = outputsOf(pool);
  const pixel = Math.floor(at / channels);
  const n = Math.floor(pixel / columns / rows);
  const top = (Math.floor(pixel / columns) % rows) * stride[0] - before(0);
  const left = (pixel % columns) * stride[1] - before(1);
  const places: number[] = [];
  for (let i = Math.max(0, top); i < Math.min(HEIGHT, top + size[0]); i++)
    for (let j = Math.max(0, left); j < Math.min(WIDTH, left + size[1]); j++)
      places.push(((n * HEIGHT + i) * WIDTH + j) * channels + (at % channels));
  return places;
}

/** Registers the tests of pooling; `loops` is called in them. */
export function poolingContract(loops: () => Tested): void {
  const poolings: ['maxPool' | 'avgPool', of: (values: number[]) => number][] = [
    ['maxPool', (values) => Math.max(...values)],
    ['avgPool', (values) => values.reduce((sum, value) => sum + value) / values.length],
  ];
  for (const [name, of] of poolings)
    it(`${name} computes each window, and keeps NaN`, (t) => {
      const { [name]: compute } = loops();
      if (!compute) return t.skip('it has none of its own');
      fc.assert(
        fc.property(pooling, fc.nat(), (pool, at) => {
          const { x, dy, geometry } = pooled(pool);
          x[at % x.length] = NaN;
          const y = new Float32Array(dy.length);
          compute(geometry, x, y);
          const expected = y.map((_, i) => of(windowOf(pool, i).map((place) => x[place]!)));
          assert.deepEqual(Array.from(y), Array.from(expected));
        }),
        { seed: 42 },
      );
    });

  it('maximum pooling sends each gradient to the first maximum of its window, or to its first pixel', (t) => {
    const { maxPoolGradient } = loops();
    if (!maxPoolGradient) return t.skip('it has none of its own');
    fc.assert(
      fc.property(pooling, fc.nat(), (pool, at) => {
        const { x, dy, geometry } = pooled(pool);
        x[at % x.length] = NaN;
        const expected = new Float32Array(x.length);
        dy.forEach((gradient, at) => {
          let best = -1;
          for (const place of windowOf(pool, at)) if (best < 0 || x[place]! > x[best]!) best = place;
          expected[best]! += gradient;
        });
        const dx = new Float32Array(x.length).fill(7);
        maxPoolGradient(geometry, x, dy, dx);
        assert.deepEqual(dx, expected);
      }),
      { seed: 42 },
    );
  });

  it('average pooling distributes each gradient over the pixels of its window', (t) => {
    const { avgPoolGradient } = loops();
    if (!avgPoolGradient) return t.skip('it has none of its own');
    fc.assert(
      fc.property(pooling, (pool) => {
        const { x, dy, geometry } = pooled(pool);
        const expected = new Float64Array(x.length);
        dy.forEach((gradient, at) => {
          const window = windowOf(pool, at);
          for (const place of window) expected[place]! += gradient / window.length;
        });
        const dx = new Float32Array(x.length).fill(7);
        avgPoolGradient(geometry, dy, dx);
        dx.forEach((value, i) => {
          near(value, expected[i]!, 1e-6);
        });
      }),
      { seed: 42 },
    );
  });
}
