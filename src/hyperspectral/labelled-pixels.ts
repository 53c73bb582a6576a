/** The labelled pixels of a tile, their folds of ground, and sums over them. Runs in worker threads. */
import { type GridName, gridByName } from '../grid/index.js';
import { createTransform, crsFromEpsg } from '../raster/index.js';
import { randomStream, shuffledOrder } from '../utils/random.js';
import { BandProducts } from './band-products.js';
import { eachBlock, type SpectrumBlock, type SpectrumFile } from './blocks.js';
import { murmurFinalise } from './hash.js';
import { labelCodes, type TileLabels } from './labels.js';
import { ExactSums, type FixedPointClassSums, type FixedPointSums, TileClassSums } from './sums.js';

/** Parts of the labelled squares. Each is scored by a classifier that the others have trained. */
export const FOLDS = 5;
/** The training on all folds. Training f, below it, leaves out fold f and the pixels near it. */
export const ALL = FOLDS;
/** Pixels of a training have no bit of its fold in `near`. */
export const mayTrain = (near: number, training: number) =>
  training === ALL || (near & (1 << training)) === 0;

export type SplitKind = 'place' | 'random';

/** Sides of the squares in pixels, from the preferred one. Neighbouring pixels are similar, so small squares overestimate the accuracy. */
export const SQUARE_SIDES = [32, 16, 8] as const;
const LEAST_SIDE = SQUARE_SIDES.at(-1)!;
/** Pixels between the squares of a fold and those that train, so that patches of both share no pixel. */
export const GAP_PX = 4;
/** Pixels by which the gap is wider, because pixels of other cells may be a little wider than those that measure it. */
const GAP_MARGIN_PX = 0.25;

/** Squares of ground in the coordinates of a grid, so that they do not depend on the cells. Plain data. */
export interface GroundSquares {
  /** Width and height of a square. */
  size: [width: number, height: number];
  /** Default: the grid of the cells. */
  grid?: GridName;
}

/** The folds of the labelled pixels. Plain data. */
export interface Folds extends GroundSquares {
  split: SplitKind;
  seed: number;
  /** Width and height of the gap. */
  gap: [number, number];
  /** Labelled squares by their column and row: number and fold. */
  squares: Map<string, { number: number; fold: number }>;
}

interface Cell {
  grid: GridName;
  geocode: string;
}

interface Size {
  width: number;
  height: number;
}

/** Columns and rows of the squares that contain the centres of the pixels of a cell, moved by -1, 0 and 1 gaps. */
function squareAxes({ grid, geocode }: Cell, { width, height }: Size, of: GroundSquares, gap = [0, 0]) {
  const { size, grid: other = grid } = of;
  const { west, south, east, north } = gridByName(grid).bounds(geocode);
  // In all grids, columns are meridians and rows are parallels.
  const crs = (name: GridName) => crsFromEpsg(gridByName(name).epsg);
  const project = other === grid ? undefined : createTransform(crs(grid), crs(other));
  const axis = (dimension: 0 | 1, count: number, from: number, to: number) =>
    Array.from({ length: count }, (_, i) => {
      const own = from + ((i + 0.5) / count) * (to - from);
      const [x, y] = dimension === 0 ? [own, south] : [west, own];
      const at = project ? project(x, y)[dimension] : own;
      return [-gap[dimension], 0, gap[dimension]].map((by) => Math.floor((at + by) / size[dimension]));
    });
  return { columns: axis(0, width, west, east), rows: axis(1, height, north, south) };
}

/** Returns a function for the column and row of the square of a pixel, as a key. */
export function squareOf(cell: Cell, file: Size, squares: GroundSquares): (pixel: number) => string {
  const { columns, rows } = squareAxes(cell, file, squares);
  return (pixel) => `${columns[pixel % file.width][1]} ${rows[Math.floor(pixel / file.width)][1]}`;
}

interface PixelFold {
  /** Number of its square. */
  square: number;
  fold: number;
  /** Bits of the folds that have squares within the gap, its own included. */
  near: number;
}

/** Returns a function for the fold of a labelled pixel. It is the same on all dates. */
export function foldOf(cell: Cell, file: Size, folds: Folds): (column: number, row: number) => PixelFold {
  const { columns, rows } = squareAxes(cell, file, folds, folds.gap);
  const found = new Map<string, PixelFold>();
  const compute = (xs: number[], ys: number[]): PixelFold => {
    const { number, fold } = folds.squares.get(`${xs[1]} ${ys[1]}`)!;
    let near = 0;
    for (const x of xs) for (const y of ys) near |= 1 << (folds.squares.get(`${x} ${y}`)?.fold ?? fold);
    return { square: number, fold, near };
  };
  return (column, row) => {
    const [xs, ys] = [columns[column], rows[row]];
    const key = `${xs} ${ys}`;
    const one = found.get(key) ?? compute(xs, ys);
    found.set(key, one);
    if (folds.split === 'place') return one;
    const fold = pixelHash(`${cell.geocode} ${folds.seed}`, row * file.width + column) % FOLDS;
    return { square: one.square, fold, near: 1 << fold };
  };
}

/** A 32-bit number that depends only on the cell and the number of a pixel (FNV-1a, then `murmurFinalise`). */
export function pixelHash(cell: string, pixel: number): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < cell.length; i++) hash = Math.imul(hash ^ cell.charCodeAt(i), 0x01000193);
  return murmurFinalise(Math.imul(hash ^ pixel, 0x01000193)) >>> 0;
}

/** Labelled pixels by code, by the column and row of their square. */
export type SquareCounts = Map<string, Map<number, number>>;

/**
 * Divides labelled squares among the folds. The classes of the fewest squares come first, and each square goes to the fold that has the
 * fewest squares of the class, then the fewest pixels (Sechidis et al. 2011). `counts`: squares of the least side; they are joined to the
 * largest side of which there are enough for all folds. `pixel`: width and height of a pixel.
 */
export function drawFolds(
  counts: SquareCounts,
  { pixel, split, seed }: { pixel: readonly number[]; split: SplitKind; seed: number },
): Folds & { side: number; counts: SquareCounts } {
  const joined = SQUARE_SIDES.map((side) => ({ side, counts: joinSquares(counts, side / LEAST_SIDE) }));
  const chosen = joined.find((one) => one.counts.size >= FOLDS) ?? joined.at(-1)!;
  const keys = [...chosen.counts.keys()].sort();
  const random = randomStream(seed);
  const order = Array.from(shuffledOrder(keys.length, random.next), (at) => keys[at]);
  const free = new Set(order);
  const folds = Array.from({ length: Math.min(FOLDS, keys.length) }, () => ({
    squares: new Map<number, number>(),
    pixels: 0,
  }));
  const codes = [...new Set([...counts.values()].flatMap((by) => [...by.keys()]))].sort((a, b) => a - b);
  const squaresWith = (code: number) => order.filter((key) => chosen.counts.get(key)!.has(code));
  const squares: Folds['squares'] = new Map();
  for (const code of codes.toSorted((a, b) => squaresWith(a).length - squaresWith(b).length))
    for (const key of squaresWith(code)) {
      if (!free.delete(key)) continue;
      const own = (fold: (typeof folds)[0]) => fold.squares.get(code) ?? 0;
      const least = folds.reduce((a, b) => ((own(b) - own(a) || b.pixels - a.pixels) < 0 ? b : a));
      for (const [one, pixels] of chosen.counts.get(key)!) {
        least.squares.set(one, (least.squares.get(one) ?? 0) + 1);
        least.pixels += pixels;
      }
      squares.set(key, { number: keys.indexOf(key), fold: folds.indexOf(least) });
    }
  const times = (pixels: number) => pixel.map((one) => one * pixels) as [number, number];
  return { ...chosen, split, seed, squares, size: times(chosen.side), gap: times(GAP_PX + GAP_MARGIN_PX) };
}

function joinSquares(counts: SquareCounts, factor: number): SquareCounts {
  const joined: SquareCounts = new Map();
  for (const [key, codes] of counts) {
    const square = key
      .split(' ')
      .map((at) => Math.floor(Number(at) / factor))
      .join(' ');
    const own = joined.get(square) ?? new Map<number, number>();
    for (const [code, pixels] of codes) own.set(code, (own.get(code) ?? 0) + pixels);
    joined.set(square, own);
  }
  return joined;
}

/** A tile, and the labels of its pixels. */
interface LabelledFile {
  file: SpectrumFile;
  cell: Cell;
  labels: TileLabels;
}

/** A tile, and the labels and folds of its pixels. */
export interface LabelledTile extends LabelledFile {
  folds: Folds;
}

/** Counts the labelled pixels of each square of the least side. `pixel`: width and height of a pixel. */
export function labelCounts(task: LabelledFile & { pixel: readonly number[] }): SquareCounts {
  const size = task.pixel.map((one) => one * LEAST_SIDE) as [number, number];
  const at = squareOf(task.cell, task.file, { size });
  const counts: SquareCounts = new Map();
  const codes = labelCodes(task.labels, task.cell, task.file);
  const visit = ({ row, column, stride, indexes }: SpectrumBlock) => {
    for (const index of indexes) {
      const pixel = (row + Math.floor(index / stride)) * task.file.width + column + (index % stride);
      const square = at(pixel);
      const own = counts.get(square) ?? new Map<number, number>();
      own.set(codes[pixel], (own.get(codes[pixel]) ?? 0) + 1);
      counts.set(square, own);
    }
  };
  eachBlock(task.file, visit, codes);
  return counts;
}

/** Sums of pixels near the same folds. */
export interface LabelSums {
  near: number;
  /** Sums of stored numbers over all pixels. */
  all: FixedPointSums;
  classes: FixedPointClassSums;
}

export function labelSums(task: LabelledTile): LabelSums[] {
  const { file } = task;
  const count = file.bands.length;
  const found = new Map<number, { products: BandProducts; all: ExactSums; classes: TileClassSums }>();
  eachLabelled(task, ({ bands }, groups) => {
    for (const { near, code, indexes } of groups) {
      const own = found.get(near) ?? {
        products: new BandProducts(count, file.dataType),
        all: new ExactSums(count),
        classes: new TileClassSums(file),
      };
      found.set(near, own);
      own.products.add(bands, indexes, (sums) => own.all.addDeviations(sums));
      own.classes.add(code, bands, indexes);
    }
  });
  return [...found].map(([near, { products, all, classes }]) => {
    all.addDeviations(products.take());
    return { near, all: all.fixedPoint(), classes: classes.fixedPoint() };
  });
}

/** Pixels of a block with the same code, of the same square. */
interface LabelledGroup extends PixelFold {
  code: number;
  indexes: Int32Array;
}

/** Calls `visit` with the labelled pixels of each block, by square and code. */
export function eachLabelled(
  { file, cell, labels, folds }: LabelledTile,
  visit: (block: SpectrumBlock, groups: LabelledGroup[]) => void,
): void {
  const codes = labelCodes(labels, cell, file);
  const foldAt = foldOf(cell, file, folds);
  eachBlock(
    file,
    (block) => {
      const groups = new Map<string, PixelFold & { code: number; indexes: number[] }>();
      for (const index of block.indexes) {
        const row = block.row + Math.floor(index / block.stride);
        const column = block.column + (index % block.stride);
        const own = foldAt(column, row);
        const code = codes[row * file.width + column];
        const key = `${own.square} ${own.fold} ${own.near} ${code}`;
        const known = groups.get(key);
        if (known) known.indexes.push(index);
        else groups.set(key, { ...own, code, indexes: [index] });
      }
      visit(
        block,
        [...groups.values()].map((one) => ({ ...one, indexes: Int32Array.from(one.indexes) })),
      );
    },
    codes,
  );
}
