/** Transforms of tiles, a run of consecutive tiles at a time. */
import type { WasmHeap } from './wasm-primitives-heap.js';
import type { Convolved, Image, Method } from './winograd-plan.js';

/** Channels of a vector. */
export const VECTOR = 4;

/** Location of the points of tiles, in bytes: address, and distances between points, tiles and pairs of channel groups. */
export interface Points {
  address: number;
  step: number;
  tile: number;
  pair: number;
}

/** Consecutive tiles of a row: index of the first one in its block, and its position in its image. */
export interface Run {
  at: number;
  count: number;
  image: number;
  row: number;
  column: number;
}

export function transform(
  heap: WasmHeap,
  { tile, transforms }: Method,
  name: keyof Method['transforms'],
  { address, row, pixel, image, channels, height, width, top, left }: Image,
  run: Run,
  points: Points,
  ...more: number[]
): void {
  const [y, x] = [tile * run.row - top, tile * run.column - left];
  heap.run[transforms[name]](
    run.count,
    channels / VECTOR,
    address + run.image * image + y * row + x * pixel,
    row,
    pixel,
    tile * pixel,
    y,
    x,
    height,
    width,
    tile,
    points.address + run.at * points.tile,
    points.step,
    points.tile,
    points.pair,
    ...more,
  );
}

/** Returns the numbers of rows and columns of tiles that cover all outputs. */
function tilesOf({ tile }: Method, { outputs }: Convolved): [number, number] {
  const most = (size: (of: Image) => number) => Math.ceil(Math.max(...outputs.map(size)) / tile);
  return [most(({ top, height }) => top + height), most(({ left, width }) => left + width)];
}

export function eachBlock(
  method: Method,
  part: Convolved,
  block: number,
  visit: (first: number, count: number) => void,
): void {
  const [rows, columns] = tilesOf(method, part);
  const all = part.batch * rows * columns;
  for (let first = 0; first < all; first += block) visit(first, Math.min(block, all - first));
}

export function eachRun(
  method: Method,
  part: Convolved,
  first: number,
  count: number,
  visit: (run: Run) => void,
): void {
  const [rows, columns] = tilesOf(method, part);
  for (let at = 0; at < count; ) {
    const line = Math.floor((first + at) / columns);
    const column = (first + at) % columns;
    const length = Math.min(count - at, columns - column);
    visit({ at, count: length, image: Math.floor(line / rows), row: line % rows, column });
    at += length;
  }
}
