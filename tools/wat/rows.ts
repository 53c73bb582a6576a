/**
 * Kernels over rows of values: activations, batch normalisation, sums, copies, and the step of Adam. Addresses and strides are in bytes.
 * Each kernel computes four values at a time, and the rest of a row one by one, with the same expression.
 */
import {
  add,
  advance,
  type Code,
  f32,
  f32x4,
  functionOf,
  i32,
  type Local,
  mul,
  type Scope,
  VECTOR,
  ZERO,
} from './emit.js';

const FLOAT = 4;

/** Reads and writes the current values of a row: four of them, or one in the first element of a vector. */
interface Access {
  load(from: Local): Code;
  store(to: Local, value: Code): Code;
  /** Adds to float64 sums in `to`, in the order of the values of the row. `ofHalf`: the two lower values, or the two upper ones. */
  addTo(to: Local, ofHalf: (promote: (value: Code) => Code) => Code): Code[];
}

const promote = (value: Code): Code => `(f64x2.promote_low_f32x4 ${value})`;
const upper = (value: Code): Code =>
  promote(`(i8x16.shuffle 8 9 10 11 12 13 14 15 8 9 10 11 12 13 14 15 ${value} ${value})`);

function accessOf(offset: Local, isWhole: boolean): Access {
  const at = (place: Local) => add(place.get, offset.get);
  const [load, store, load64, store64] = isWhole
    ? ['v128.load', 'v128.store', 'v128.load', 'v128.store']
    : ['v128.load32_zero', 'v128.store32_lane', 'v128.load64_zero', 'v128.store64_lane'];
  const lane = isWhole ? '' : ' 0';
  return {
    load: (from) => `(${load} ${at(from)})`,
    store: (to, value) => `(${store}${lane} ${at(to)} ${value})`,
    addTo: (to, ofHalf) =>
      (isWhole ? [promote, upper] : [promote]).map((half, i) => {
        const place = add(to.get, mul(offset.get, i32(2)), i32(i * VECTOR));
        return `(${store64}${lane} ${place} (f64x2.add (${load64} ${place}) ${ofHalf(half)}))`;
      }),
  };
}

/** Runs `body` for all `length` values of a row. */
function eachValue(scope: Scope, length: Local, body: (access: Access) => Code[]): Code[] {
  const [offset, end, whole] = ['offset', 'end', 'whole'].map((name) => scope.i32(name));
  const until = (limit: Local, step: number, isWhole: boolean) =>
    scope.whileBelow(offset, limit, [...body(accessOf(offset, isWhole)), advance(offset, i32(step))]);
  return [
    end.set(mul(length.get, i32(FLOAT))),
    whole.set(`(i32.and ${end.get} ${i32(-VECTOR)})`),
    offset.set(i32(0)),
    until(whole, VECTOR, true),
    until(end, FLOAT, false),
  ];
}

const splat = (value: Code): Code => f32x4('splat', value);
const select = (yes: Code, no: Code, mask: Code): Code => `(v128.bitselect ${yes} ${no} ${mask})`;

/** y = x if x is not negative, otherwise alpha x; 0 if alpha is 0, even for infinity. */
function leakyRelu(): Code {
  return functionOf('leakyRelu', ['length', f32('alpha'), 'x', 'y'], (p, scope) => {
    const [value, alpha, isLeaky] = ['value', 'factor', 'isLeaky'].map((name) => scope.v128(name));
    return [
      alpha.set(splat(p.alpha.get)),
      isLeaky.set(f32x4('ne', alpha.get, ZERO)),
      ...eachValue(scope, p.length, ({ load, store }) => {
        const scaled = `(v128.and ${f32x4('mul', alpha.get, value.get)} ${isLeaky.get})`;
        return [value.set(load(p.x)), store(p.y, select(scaled, value.get, f32x4('lt', value.get, ZERO)))];
      }),
    ];
  });
}

/** dx = dy if x is positive, otherwise alpha dy. */
function leakyReluGradient(): Code {
  return functionOf('leakyReluGradient', ['length', f32('alpha'), 'x', 'dy', 'dx'], (p, scope) =>
    eachValue(scope, p.length, ({ load, store }) => {
      const slope = select(splat('(f32.const 1)'), splat(p.alpha.get), f32x4('gt', load(p.x), ZERO));
      return [store(p.dx, f32x4('mul', load(p.dy), slope))];
    }),
  );
}

/** Adds the rows of x to the float64 at `sums`. */
function columnSums(): Code {
  return functionOf('columnSums', ['rows', 'columns', 'x', 'sums'], (p, scope) => {
    const value = scope.v128('value');
    return eachRow(scope, p.rows, p.columns, [p.x], ({ load, addTo }) => [
      value.set(load(p.x)),
      ...addTo(p.sums, (half) => half(value.get)),
    ]);
  });
}

/** Adds, for each channel, dy to the float64 at `sums`, and dy (x - mean) to those at `products`. */
function channelSums(): Code {
  const parameters = ['rows', 'channels', 'x', 'dy', 'mean', 'sums', 'products'] as const;
  return functionOf('channelSums', parameters, (p, scope) => {
    const [x, dy, mean] = ['ofX', 'ofDy', 'ofMean'].map((name) => scope.v128(name));
    return eachRow(scope, p.rows, p.channels, [p.x, p.dy], ({ load, addTo }) => [
      ...[x.set(load(p.x)), dy.set(load(p.dy)), mean.set(load(p.mean))],
      ...addTo(p.sums, (half) => half(dy.get)),
      ...addTo(
        p.products,
        (half) => `(f64x2.mul ${half(dy.get)} (f64x2.sub ${half(x.get)} ${half(mean.get)}))`,
      ),
    ]);
  });
}

/** y = scale (x - mean) + shift, for each channel. */
function scaleChannels(): Code {
  const parameters = ['rows', 'channels', 'x', 'mean', 'scale', 'shift', 'y'] as const;
  return functionOf('scaleChannels', parameters, (p, scope) =>
    eachRow(scope, p.rows, p.channels, [p.x, p.y], ({ load, store }) => [
      store(
        p.y,
        f32x4('add', f32x4('mul', load(p.scale), f32x4('sub', load(p.x), load(p.mean))), load(p.shift)),
      ),
    ]),
  );
}

/** dx = scale dy + slope (x - mean) + shift, for each channel. */
function batchNormGradient(): Code {
  const parameters = ['rows', 'channels', 'x', 'dy', 'mean', 'scale', 'slope', 'shift', 'dx'] as const;
  return functionOf('batchNormGradient', parameters, (p, scope) =>
    eachRow(scope, p.rows, p.channels, [p.x, p.dy, p.dx], ({ load, store }) => {
      const scaled = f32x4('mul', load(p.scale), load(p.dy));
      const sloped = f32x4('mul', load(p.slope), f32x4('sub', load(p.x), load(p.mean)));
      return [store(p.dx, f32x4('add', f32x4('add', scaled, sloped), load(p.shift)))];
    }),
  );
}

/** Rows without gaps. The pointers move to their end. */
function eachRow(
  scope: Scope,
  rows: Local,
  columns: Local,
  pointers: readonly Local[],
  body: (access: Access) => Code[],
): Code[] {
  const step = mul(columns.get, i32(FLOAT));
  return [
    scope.repeat(rows, [...eachValue(scope, columns, body), ...pointers.map((one) => advance(one, step))]),
  ];
}

/** Writes a range of `columns` values of each row; `fromRow` and `toRow` are the strides of the rows. */
function runs(name: string, combine: (load: Access['load'], from: Local, to: Local) => Code): Code {
  return functionOf(name, ['rows', 'columns', 'from', 'fromRow', 'to', 'toRow'], (p, scope) => [
    scope.repeat(p.rows, [
      ...eachValue(scope, p.columns, ({ load, store }) => [store(p.to, combine(load, p.from, p.to))]),
      advance(p.from, p.fromRow.get),
      advance(p.to, p.toRow.get),
    ]),
  ]);
}

/** Copies a matrix, whose columns have the stride `fromColumn`, into rows without gaps between their values. */
function copyStrided(): Code {
  const parameters = ['rows', 'columns', 'from', 'fromRow', 'fromColumn', 'to', 'toRow'] as const;
  return functionOf('copyStrided', parameters, (p, scope) => {
    const [column, source, target] = ['column', 'source', 'target'].map((name) => scope.i32(name));
    return [
      scope.repeat(p.rows, [
        column.set(p.columns.get),
        source.set(p.from.get),
        target.set(p.to.get),
        scope.repeat(column, [
          `(f32.store ${target.get} (f32.load ${source.get}))`,
          advance(source, p.fromColumn.get),
          advance(target, i32(FLOAT)),
        ]),
        advance(p.from, p.fromRow.get),
        advance(p.to, p.toRow.get),
      ]),
    ];
  });
}

/** One step of Adam, as in `ComputePrimitives.adam`; `first` is 1 - beta1, `second` is 1 - beta2. */
function adam(): Code {
  const numbers = [f32('first'), f32('second'), f32('decay'), f32('rate'), f32('epsilon')] as const;
  const arrays = ['variable', 'gradient', 'mean', 'square', 'toVariable', 'toMean', 'toSquare'] as const;
  return functionOf('adam', ['length', ...numbers, ...arrays], (p, scope) => {
    const [g, m, v] = ['g', 'm', 'v'].map((name) => scope.v128(name));
    const times = (factor: Local, value: Code) => f32x4('mul', splat(factor.get), value);
    const towards = (share: Local, average: Local, value: Code) =>
      average.set(f32x4('add', average.get, times(share, f32x4('sub', value, average.get))));
    return eachValue(scope, p.length, ({ load, store }) => [
      g.set(f32x4('add', load(p.gradient), times(p.decay, load(p.variable)))),
      m.set(load(p.mean)),
      towards(p.first, m, g.get),
      v.set(load(p.square)),
      towards(p.second, v, f32x4('mul', g.get, g.get)),
      store(p.toMean, m.get),
      store(p.toSquare, v.get),
      store(
        p.toVariable,
        f32x4(
          'sub',
          load(p.variable),
          f32x4('div', times(p.rate, m.get), f32x4('add', f32x4('sqrt', v.get), splat(p.epsilon.get))),
        ),
      ),
    ]);
  });
}

export const rowKernels = (): Code[] => [
  ...[leakyRelu(), leakyReluGradient(), columnSums(), channelSums(), scaleChannels(), batchNormGradient()],
  runs('copyRuns', (load, from) => load(from)),
  runs('addRuns', (load, from, to) => f32x4('add', load(to), load(from))),
  ...[copyStrided(), adam()],
];
