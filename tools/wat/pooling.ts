/** Kernels of pooling. Addresses and strides are in bytes. */
import {
  add,
  advance,
  and,
  type Code,
  f32x4,
  functionOf,
  i32,
  type Local,
  load,
  mul,
  store,
  sub,
  VECTOR,
  when,
  ZERO,
} from './emit.js';

/**
 * `count` consecutive windows of rows x columns pixels, with the stride `step` in x. Rows of x have the stride `row`, pixels the stride
 * `pixel`; each pixel has `groups` of four channels. y has one pixel for each window.
 */
const WINDOWS = ['count', 'groups', 'rows', 'columns', 'x', 'row', 'pixel', 'step', 'y'] as const;

/** Visits the pixels of a window in the image at `from`, with the address of four channels and the index of the pixel. */
type EachPixel = (from: Local, body: (at: Code, index: Code) => Code[]) => Code[];

interface Windows<Name extends string> {
  p: Record<string, Local>;
  vectors: Record<Name, Local>;
  /** Address of the first pixel of the window in x. */
  first: Code;
  eachPixel: EachPixel;
}

/** Returns a kernel that reads or writes x; `more` are images with the same layout. `body` handles four channels of one window. */
function windowFunction<Name extends string>(
  name: string,
  more: readonly string[],
  vectors: readonly Name[],
  body: (windows: Windows<Name>) => Code[],
): Code {
  return functionOf(name, [...WINDOWS, ...more], (given, scope) => {
    const p = given as Record<string, Local>;
    const [group, i, j] = ['group', 'i', 'j'].map((one) => scope.i32(one));
    const [channel, at, lineAt, index] = ['channel', 'at', 'lineAt', 'index'].map((one) => scope.i32(one));
    // Most windows have 2 x 2 pixels, for which the loop would take longer than the computation.
    const eachOfFour: EachPixel = (from, visit) => [
      at.set(add(from.get, channel.get)),
      ...visit(at.get, i32(0)),
      advance(at, p.pixel.get),
      ...visit(at.get, i32(1)),
      advance(at, sub(p.row.get, p.pixel.get)),
      ...visit(at.get, i32(2)),
      advance(at, p.pixel.get),
      ...visit(at.get, i32(3)),
    ];
    const eachOfMany: EachPixel = (from, visit) => [
      index.set(i32(0)),
      lineAt.set(add(from.get, channel.get)),
      i.set(p.rows.get),
      scope.countDown(i, [
        at.set(lineAt.get),
        j.set(p.columns.get),
        scope.countDown(j, [...visit(at.get, index.get), advance(at, p.pixel.get), advance(index, i32(1))]),
        advance(lineAt, p.row.get),
      ]),
    ];
    const locals = Object.fromEntries(vectors.map((one) => [one, scope.v128(one)])) as Record<Name, Local>;
    const windows = (eachPixel: EachPixel) => [
      scope.countDown(p.count, [
        group.set(p.groups.get),
        channel.set(i32(0)),
        scope.countDown(group, [
          ...body({ p, vectors: locals, first: add(p.x.get, channel.get), eachPixel }),
          advance(p.y, i32(VECTOR)),
          advance(channel, i32(VECTOR)),
        ]),
        ...['x', ...more].map((image) => advance(p[image], p.step.get)),
      ]),
    ];
    const isTwo = (length: Local) => `(i32.eq ${length.get} ${i32(2)})`;
    return [when(and(isTwo(p.rows), isTwo(p.columns)), windows(eachOfFour), windows(eachOfMany))];
  });
}

const NOTHING = '(v128.const f32x4 -inf -inf -inf -inf)';

/** Computes the maximum of each window; NaN if the window has one. */
function maxPool(): Code {
  return windowFunction('maxPool', [], ['most'], ({ p, vectors: { most }, eachPixel }) => [
    most.set(NOTHING),
    ...eachPixel(p.x, (at) => [most.set(f32x4('max', most.get, load(at)))]),
    store(p.y.get, most.get),
  ]);
}

/** Stores a gradient at a pixel: overlapping windows add to the stored value, disjoint windows overwrite it. */
type Put = (at: Code, value: Code) => Code;
const adds: Put = (at, value) => store(at, f32x4('add', load(at), value));

/** Stores the gradients y in dx, which has the layout of x, at the first maximum of each window, and 0 at its other pixels. */
function maxPoolGradient(name: string, put: Put): Code {
  const names = ['most', 'where', 'value', 'mask'] as const;
  return windowFunction(name, ['dx'], names, ({ p, vectors, first, eachPixel }) => {
    const { most, where, value, mask } = vectors;
    const select = (yes: Code, no: Code) => `(v128.bitselect ${yes} ${no} ${mask.get})`;
    const splat = (index: Code) => `(i32x4.splat ${index})`;
    return [
      most.set(load(first)),
      where.set(splat(i32(0))),
      ...eachPixel(p.x, (at, index) => [
        value.set(load(at)),
        mask.set(f32x4('gt', value.get, most.get)),
        most.set(select(value.get, most.get)),
        where.set(select(splat(index), where.get)),
      ]),
      value.set(load(p.y.get)),
      ...eachPixel(p.dx, (at, index) => [
        mask.set(`(i32x4.eq ${where.get} ${splat(index)})`),
        put(at, `(v128.and ${value.get} ${mask.get})`),
      ]),
    ];
  });
}

/** Computes the mean of each window. */
function avgPool(): Code {
  return windowFunction('avgPool', [], ['sum'], ({ p, vectors: { sum }, eachPixel }) => [
    sum.set(ZERO),
    ...eachPixel(p.x, (at) => [sum.set(f32x4('add', sum.get, load(at)))]),
    store(p.y.get, f32x4('div', sum.get, pixelsOf(p))),
  ]);
}

/** Distributes the gradients y equally over the pixels of each window in x. */
function avgPoolGradient(name: string, put: Put): Code {
  return windowFunction(name, [], ['part'], ({ p, vectors: { part }, eachPixel }) => [
    part.set(f32x4('div', load(p.y.get), pixelsOf(p))),
    ...eachPixel(p.x, (at) => [put(at, part.get)]),
  ]);
}

const pixelsOf = (p: Record<string, Local>): Code =>
  f32x4('splat', `(f32.convert_i32_u ${mul(p.rows.get, p.columns.get)})`);

export const poolingKernels = (): Code[] => [
  maxPool(),
  avgPool(),
  maxPoolGradient('maxPoolGradient', adds),
  avgPoolGradient('avgPoolGradient', adds),
  maxPoolGradient('maxPoolGradientDisjoint', store),
  avgPoolGradient('avgPoolGradientDisjoint', store),
];
