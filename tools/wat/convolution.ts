/** Kernels of convolutions: matrix products and the Winograd transforms of tiles. Addresses and strides are in bytes. */

import {
  add,
  advance,
  and,
  type Code,
  call,
  choose,
  f32x4,
  functionOf,
  i32,
  isBelow,
  type Local,
  load,
  loadSplat,
  mul,
  type Scope,
  store,
  sub,
  VECTOR,
  when,
  ZERO,
} from './emit.js';
import { LinearMap, type MultiplyAdd } from './linear-map.js';
import { type Matrix, OF_FOUR, OF_SIX, type Winograd } from './winograd.js';

/** Rows and vectors of the part of a product that is kept in registers. More would not fit into the 16 registers of x86 and ARM. */
const ROWS = 4;
const VECTORS = 2;

/**
 * c [m, 8] = a [m, chunks x k] b [chunks x k, 8], m a multiple of 4. Sums start with the 8 values at `start`; if it is 0, with the values
 * of c. Strides: `aRow` between four rows of a, `aNext` between groups of four rows, `aColumn` between k columns, `aChunk` between
 * chunks, `bRow` between rows of b.
 */
const PANEL = [
  'm',
  'chunks',
  'k',
  'a',
  'aRow',
  'aColumn',
  'aChunk',
  'aNext',
  'b',
  'bRow',
  'c',
  'cRow',
  'start',
] as const;

function multiplyPanel(multiplyAdd: MultiplyAdd): Code {
  return functionOf('multiplyPanel', PANEL, (p, scope) => {
    const counter = scope.i32('n');
    const chunk = scope.i32('chunk');
    const chunkAt = scope.i32('chunkAt');
    const [bAt, value] = [scope.i32('bAt'), scope.v128('value')];
    const rowsOfA = list(ROWS, (i) => scope.i32(`a${i}`));
    const rowsOfC = list(ROWS, (i) => scope.i32(`c${i}`));
    const columnsOfB = list(VECTORS, (j) => scope.v128(`b${j}`));
    const sums = list(ROWS, (i) => list(VECTORS, (j) => scope.v128(`sum${i}${j}`)));
    const each = (write: (i: number, j: number) => Code) =>
      sums.flatMap((row, i) => row.map((_, j) => write(i, j)));
    const step = [
      ...columnsOfB.map((column, j) => column.set(load(bAt.get, VECTOR * j))),
      ...rowsOfA.flatMap((at, i) => [
        value.set(loadSplat(at.get)),
        ...sums[i].map((sum, j) => sum.set(multiplyAdd(value.get, columnsOfB[j].get, sum.get))),
      ]),
      ...rowsOfA.map((at) => advance(at, p.aColumn.get)),
      advance(bAt, p.bRow.get),
    ];
    const rows = [
      ...apart(rowsOfC, p.c.get, p.cRow.get),
      when(
        p.start.get,
        each((i, j) => sums[i]![j].set(load(p.start.get, VECTOR * j))),
        each((i, j) => sums[i]![j].set(load(rowsOfC[i].get, VECTOR * j))),
      ),
      bAt.set(p.b.get),
      chunkAt.set(p.a.get),
      chunk.set(p.chunks.get),
      scope.countDown(chunk, [
        ...apart(rowsOfA, chunkAt.get, p.aRow.get),
        counter.set(p.k.get),
        scope.countDown(counter, step),
        advance(chunkAt, p.aChunk.get),
      ]),
      ...each((i, j) => store(rowsOfC[i].get, sums[i]![j].get, VECTOR * j)),
      advance(p.a, p.aNext.get),
      advance(p.c, mul(p.cRow.get, i32(ROWS))),
      p.m.set(sub(p.m.get, i32(ROWS - 1))),
    ];
    return [scope.countDown(p.m, rows)];
  });
}

/**
 * Computes a product for each of `points` matrices and each of `panels` panels of 8 columns. Parameters as in `multiplyPanel`, without
 * chunks.
 */
function multiplyPoints(): Code {
  const parameters = [
    ...['points', 'panels', 'm', 'k', 'a', 'aRow', 'aColumn', 'aNext', 'aPoint'],
    ...['b', 'bPanel', 'c', 'cRow', 'cPoint', 'start'],
  ] as const;
  return functionOf('multiplyPoints', parameters, (given, scope) => {
    const p = given as Record<string, Local>;
    const [panel, cAt] = [scope.i32('panel'), scope.i32('cAt')];
    const one = call(
      'multiplyPanel',
      ...[p.m.get, i32(1), p.k.get, p.a.get, p.aRow.get, p.aColumn.get, i32(0), p.aNext.get],
      ...[p.b.get, i32(VECTORS * VECTOR), cAt.get, p.cRow.get, p.start.get],
    );
    return [
      scope.countDown(p.points, [
        panel.set(p.panels.get),
        cAt.set(p.c.get),
        scope.countDown(panel, [one, advance(p.b, p.bPanel.get), advance(cAt, i32(VECTORS * VECTOR))]),
        advance(p.a, p.aPoint.get),
        advance(p.c, p.cPoint.get),
      ]),
    ];
  });
}

/**
 * Parameters of the transforms. A tile is stored in an image of rows and pixels, and as points: n x n values with the stride `pointStep`.
 * For `count` consecutive tiles, the strides are `imageTile` and `pointTile`, and `left` grows by `across` pixels. Each tile has `groups`
 * of four channels; pairs of groups have the stride `pointPair` in the points. The upper left pixel of the first tile is at row `top` and
 * column `left` of an image of `height` x `width`; pixels outside are read as 0 and not written.
 */
const TILE = [
  ...[
    'count',
    'groups',
    'image',
    'imageRow',
    'imagePixel',
    'imageTile',
    'top',
    'left',
    'height',
    'width',
    'across',
  ],
  ...['points', 'pointStep', 'pointTile', 'pointPair'],
] as const;

/** Transforms pixels to points: applies the matrix to the columns and to the rows of each tile. */
function toPoints(name: string, matrix: Matrix, multiplyAdd: MultiplyAdd): Code {
  const side = matrix[0].length;
  return tileFunction(name, [], side, multiplyAdd, (t) => {
    const { map, scope, at, to, isInside, p } = t;
    const pixels = list(side, (i) => scope.v128(`pixel${i}`));
    const half = list(matrix.length, (i) => list(side, (j) => scope.v128(`half${i}_${j}`)));
    const results = list(matrix.length, (i) => scope.v128(`result${i}`));
    const temporaries = list(side, (i) => scope.v128(`temporary${i}`));
    const columns = (load: (i: number, j: number) => Code) =>
      list(side, (j) => [
        ...pixels.map((pixel, i) => pixel.set(load(i, j))),
        ...map.apply(
          matrix,
          pixels,
          half.map((row) => row[j]),
          temporaries,
        ),
      ]).flat();
    return [
      when(
        isInside.get,
        columns((i, j) => load(at(i, j))),
        columns((i, j) => choose(t.isIn(i, j), load(at(i, j)), ZERO)),
      ),
      ...half.flatMap((row) => [
        ...map.apply(matrix, row, results, temporaries),
        ...results.flatMap((result) => [store(to.get, result.get), advance(to, p.pointStep.get)]),
      ]),
    ];
  });
}

/** Transforms points to pixels. Adds the values at `bias`, one for each channel, if it is not 0. */
function toPixels(name: string, matrix: Matrix, multiplyAdd: MultiplyAdd): Code {
  const side = matrix.length;
  const width = matrix[0].length;
  return tileFunction(name, ['bias'], side, multiplyAdd, (t) => {
    const { map, scope, at, to, isInside, p, channel } = t;
    const points = list(width, (i) => scope.v128(`point${i}`));
    const half = list(side, (i) => list(width, (j) => scope.v128(`half${i}_${j}`)));
    const results = list(side, (i) => scope.v128(`result${i}`));
    const temporaries = list(width, (i) => scope.v128(`temporary${i}`));
    const [bias, from] = [scope.v128('added'), scope.i32('from')];
    const rowOfPoints = mul(p.pointStep.get, i32(width));
    return [
      bias.set(choose(p.bias.get, load(add(p.bias.get, channel.get)), ZERO)),
      ...list(width, (j) => [
        from.set(add(to.get, mul(p.pointStep.get, i32(j)))),
        ...points.flatMap((point) => [point.set(load(from.get)), advance(from, rowOfPoints)]),
        ...map.apply(
          matrix,
          points,
          half.map((row) => row[j]),
          temporaries,
        ),
      ]).flat(),
      ...half.flatMap((row, i) => [
        ...map.apply(matrix, row, results, temporaries),
        ...results.map((result, j) =>
          when(`(i32.or ${isInside.get} ${t.isIn(i, j)})`, [
            store(at(i, j), f32x4('add', result.get, bias.get)),
          ]),
        ),
      ]),
    ];
  });
}

interface Tile {
  map: LinearMap;
  scope: Scope;
  p: Record<string, Local>;
  /** Address of a pixel. */
  at: (i: number, j: number) => Code;
  /** Address of the points. */
  to: Local;
  /** True if the entire tile is inside the image; `isIn` is true if one pixel is. */
  isInside: Local;
  isIn: (i: number, j: number) => Code;
  /** Byte offset of the group of channels. */
  channel: Local;
}

function tileFunction(
  name: string,
  more: readonly string[],
  side: number,
  multiplyAdd: MultiplyAdd,
  write: (tile: Tile) => Code[],
): Code {
  return functionOf(name, [...TILE, ...more], (given, scope) => {
    const p = given as Record<string, Local>;
    const map = new LinearMap(scope, multiplyAdd);
    const [group, pair] = [scope.i32('group'), scope.i32('pair')];
    const [to, isInside, channel] = [scope.i32('to'), scope.i32('isInside'), scope.i32('channel')];
    const rowsOf = list(side, (i) => scope.i32(`row${i}`));
    const offsets = list(side, (j) => scope.i32(`offset${j}`));
    const at = (i: number, j: number) => add(rowsOf[i].get, offsets[j].get);
    const isIn = (i: number, j: number) =>
      and(isBelow(add(p.top.get, i32(i)), p.height.get), isBelow(add(p.left.get, i32(j)), p.width.get));
    const body = write({ map, scope, p, at, to, isInside, isIn, channel });
    const [from, last] = [
      (first: string) => isBelow(p[first].get, i32(2 ** 31)),
      (first: string, size: string) => `(i32.le_s ${add(p[first].get, i32(side))} ${p[size].get})`,
    ];
    return [
      ...map.setConstants(),
      ...offsets.map((offset, j) => offset.set(mul(p.imagePixel.get, i32(j)))),
      scope.countDown(p.count, [
        isInside.set(and(from('top'), from('left'), last('top', 'height'), last('left', 'width'))),
        group.set(p.groups.get),
        channel.set(i32(0)),
        pair.set(i32(0)),
        scope.countDown(group, [
          ...apart(rowsOf, add(p.image.get, channel.get), p.imageRow.get),
          to.set(add(p.points.get, pair.get, `(i32.and ${channel.get} ${i32(VECTOR)})`)),
          ...body,
          advance(channel, i32(VECTOR)),
          // After every second group.
          when(`(i32.eqz (i32.and ${channel.get} ${i32(VECTOR)}))`, [advance(pair, p.pointPair.get)]),
        ]),
        advance(p.image, p.imageTile.get),
        advance(p.points, p.pointTile.get),
        advance(p.left, p.across.get),
      ]),
    ];
  });
}

/** The transforms of tiles for given numbers of outputs and taps; their names end with the side of the tile. */
function transforms(
  { side, inputs, filters, outputs }: Winograd,
  tile: number,
  taps: number,
  multiplyAdd: MultiplyAdd,
) {
  return [
    toPoints(`inputPoints${side}`, inputs, multiplyAdd),
    toPoints(`filterPoints${side}`, filters(taps), multiplyAdd),
    toPixels(`outputPixels${side}`, outputs(tile), multiplyAdd),
    // The gradient of the filter is a convolution of the input with the gradients; a tile has as many gradients as outputs.
    toPoints(`gradientPoints${side}`, filters(tile), multiplyAdd),
    toPixels(`filterPixels${side}`, outputs(taps), multiplyAdd),
  ];
}

export const convolutionKernels = (multiplyAdd: MultiplyAdd): Code[] => [
  multiplyPanel(multiplyAdd),
  multiplyPoints(),
  ...transforms(OF_SIX, 4, 3, multiplyAdd),
  ...transforms(OF_FOUR, 3, 2, multiplyAdd),
];

/** Sets pointers to the first of several rows. */
function apart(pointers: readonly Local[], first: Code, distance: Code): Code[] {
  return pointers.map((pointer, i) => pointer.set(i === 0 ? first : add(pointers[i - 1].get, distance)));
}

const list = <T>(length: number, write: (i: number) => T): T[] => Array.from({ length }, (_, i) => write(i));
