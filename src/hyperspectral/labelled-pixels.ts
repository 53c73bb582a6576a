/** The labelled pixels of a tile, their split into training, tuning and validation, and sums over them. Runs in worker threads. */
import { createHash } from 'node:crypto';
import type { GridName } from '../grid/index.js';
import { BandProducts } from './band-products.js';
import { eachBlock, type SpectrumBlock, type SpectrumFile } from './blocks.js';
import { labelCodes, type TileLabels } from './labels.js';
import { ExactSums, type FixedPointClassSums, type FixedPointSums, TileClassSums } from './sums.js';

export const SETS = ['train', 'tune', 'validation'] as const;
/** Indexes of `SETS`. */
export const TRAIN = 0;
export const TUNE = 1;
export const VALIDATION = 2;
export type SplitKind = 'place' | 'random';

/** Side of the squares that belong to one set. Neighbouring pixels are similar, so a random split overestimates the accuracy. */
const BLOCK_SIDE_PX = 32;
/** Squares are divided into 20 parts: 5 validate, 3 tune, and the others train. */
const PARTS = 20;
const VALIDATION_PARTS = 5;
const TUNE_PARTS = 3;

/** Returns a function for the set of a pixel of a cell, as an index of `SETS`. The set is the same on all dates. */
export function setOf(geocode: string, kind: SplitKind): (column: number, row: number) => number {
  const side = kind === 'place' ? BLOCK_SIDE_PX : 1;
  const known = new Map<string, number>();
  return (column, row) => {
    const square = `${Math.floor(column / side)} ${Math.floor(row / side)}`;
    let part = known.get(square);
    if (part === undefined) {
      const digest = createHash('sha256').update(`${geocode} ${square}`).digest();
      part = digest.readUInt32LE(0) % PARTS;
      known.set(square, part);
    }
    if (part < VALIDATION_PARTS) return VALIDATION;
    return part < VALIDATION_PARTS + TUNE_PARTS ? TUNE : TRAIN;
  };
}

/** A tile, and the labels and sets of its pixels. */
export interface LabelledTile {
  file: SpectrumFile;
  cell: { grid: GridName; geocode: string };
  labels: TileLabels;
  split: SplitKind;
}

/** Sums of one set. */
export interface LabelSums {
  /** Sums of stored numbers over all pixels of the set. */
  all: FixedPointSums;
  classes: FixedPointClassSums;
}

/** Sums the labelled pixels of each of `SETS`. */
export function labelSums(task: LabelledTile): LabelSums[] {
  const { file } = task;
  const count = file.bands.length;
  const sets = SETS.map(() => ({
    products: new BandProducts(count, file.dataType),
    all: new ExactSums(count),
    classes: new TileClassSums(file),
  }));
  eachLabelled(task, ({ bands }, groups) => {
    for (const { set, code, indexes } of groups) {
      const { products, all, classes } = sets[set];
      products.add(bands, indexes, (sums) => all.addDeviations(sums));
      classes.add(code, bands, indexes);
    }
  });
  return sets.map(({ products, all, classes }) => {
    all.addDeviations(products.take());
    return { all: all.fixedPoint(), classes: classes.fixedPoint() };
  });
}

/** Pixels of a block with the same code and the same set, an index of `SETS`. */
interface LabelledGroup {
  set: number;
  code: number;
  indexes: Int32Array;
}

/** Calls `visit` with the labelled pixels of each block, by set and code. */
export function eachLabelled(
  { file, cell, labels, split }: LabelledTile,
  visit: (block: SpectrumBlock, groups: LabelledGroup[]) => void,
): void {
  const codes = labelCodes(labels, cell, file);
  const setAt = setOf(cell.geocode, split);
  eachBlock(
    file,
    (block) => {
      const groups = new Map<number, number[]>();
      for (const index of block.indexes) {
        const row = block.row + Math.floor(index / block.stride);
        const column = block.column + (index % block.stride);
        const key = setAt(column, row) * 256 + codes[row * file.width + column];
        const known = groups.get(key);
        if (known) known.push(index);
        else groups.set(key, [index]);
      }
      const all = [...groups].map(([key, indexes]) => ({
        set: Math.floor(key / 256),
        code: key % 256,
        indexes: Int32Array.from(indexes),
      }));
      visit(block, all);
    },
    codes,
  );
}
