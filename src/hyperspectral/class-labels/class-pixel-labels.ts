/** The labelled pixels of a tile, and sums over them. Runs in worker threads. */
import type { GridName } from '../../grid/index.js';
import {
  BandProducts,
  ExactSums,
  type FixedPointClassSums,
  type FixedPointSums,
  TileClassSums,
} from '../reproducible-sums/index.js';
import { eachBlock, type SpectrumBlock, type SpectrumFile } from '../spectrum-reading/index.js';
import { SETS, type SplitKind, setOf } from './class-label-split.js';
import { labelCodes, type TileLabels } from './class-labels.js';

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
export interface LabelledGroup {
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
