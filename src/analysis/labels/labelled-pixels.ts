/** Sums over labelled pixels of a tile, and how a classifier does on them. Runs in worker threads. */
import type { GridName } from '../../geocode/index.js';
import { pixelFunction } from '../pixels/methods.js';
import { PANEL } from '../pixels/pixel-panel.js';
import { ExactSums, type WholeSums } from '../sums/band-statistics.js';
import { TileClassSums, type WholeClassSums } from '../sums/class-sums.js';
import { BandProducts } from '../sums/products.js';
import { eachBlock, type SpectrumBlock, type SpectrumFile } from '../tile-blocks.js';
import { type Labels, labelCodes } from './labels.js';
import { SETS, type SplitKind, setOf } from './split.js';

interface LabelledTile {
  file: SpectrumFile;
  place: { grid: GridName; geocode: string };
  labels: Labels;
  split: SplitKind;
}

/** Sum up the labelled pixels of each set. */
export interface LabelSumsTask extends LabelledTile {
  kind: 'label-sums';
}

/** Sums of one set. */
export interface LabelSums {
  /** Sums of stored numbers over all pixels of the set. */
  all: WholeSums;
  classes: WholeClassSums;
}

/** One for each of `SETS`. */
export function labelSums(task: LabelSumsTask): LabelSums[] {
  const { file } = task;
  const count = file.bands.length;
  const sets = SETS.map(() => ({
    products: new BandProducts(count, file.dataType),
    all: new ExactSums(count),
    classes: new TileClassSums(file),
  }));
  eachLabelled(task, ({ bands }, groups) => {
    for (const { set, code, indexes } of groups) {
      const { products, all, classes } = sets[set]!;
      products.add(bands, indexes, (sums) => all.addDeviations(sums));
      classes.add(code, bands, indexes);
    }
  });
  return sets.map(({ products, all, classes }) => {
    all.addDeviations(products.take());
    return { all: all.whole(), classes: classes.whole() };
  });
}

/** Count what linear classifiers say of the labelled pixels of a set. */
export interface ScoreTask extends LabelledTile {
  kind: 'score';
  set: number;
  /** The codes, in the order of the rows of the classifiers. */
  codes: number[];
  centre: Float64Array;
  classifiers: LinearClassifier[];
}

/** The class whose row of weights (x - centre) + bias is largest. */
export interface LinearClassifier {
  weights: Float64Array;
  bias: Float64Array;
}

/** For each classifier the pixels of each code (rows) that it takes for each code (columns). */
export function scores(task: ScoreTask): number[][] {
  const { file, set, codes, centre, classifiers } = task;
  const functions = classifiers.map(({ weights }) =>
    pixelFunction({ kind: 'linear', weights, centre }, file),
  );
  const tables = classifiers.map(() => new Array<number>(codes.length ** 2).fill(0));
  eachLabelled(task, ({ bands }, groups) => {
    for (const { set: own, code, indexes } of groups) {
      const truth = codes.indexOf(code);
      if (own !== set || truth < 0) continue;
      for (const [c, { evaluate }] of functions.entries()) {
        const { bias } = classifiers[c]!;
        for (let from = 0; from < indexes.length; from += PANEL) {
          const values = evaluate(bands, indexes, from);
          const count = Math.min(PANEL, indexes.length - from);
          for (let i = 0; i < count; i++) tables[c]![truth * codes.length + best(values, i, bias)]!++;
        }
      }
    }
  });
  return tables;
}

function best(values: ArrayLike<number>, pixel: number, bias: Float64Array): number {
  let row = 0;
  for (let r = 1; r < bias.length; r++)
    if (values[r * PANEL + pixel]! + bias[r]! > values[row * PANEL + pixel]! + bias[row]!) row = r;
  return row;
}

interface LabelledGroup {
  set: number;
  code: number;
  indexes: Int32Array;
}

/** Calls `visit` with the labelled pixels of each block, by set and code. */
function eachLabelled(
  { file, place, labels, split }: LabelledTile,
  visit: (block: SpectrumBlock, groups: LabelledGroup[]) => void,
): void {
  const codes = labelCodes(labels, place, file);
  const set = setOf(place.geocode, split);
  eachBlock(
    file,
    (block) => {
      const groups = new Map<number, number[]>();
      for (const index of block.indexes) {
        const row = block.row + Math.floor(index / block.stride);
        const column = block.column + (index % block.stride);
        const key = set(column, row) * 256 + codes[row * file.width + column]!;
        const known = groups.get(key);
        if (known) known.push(index);
        else groups.set(key, [index]);
      }
      const all = [...groups].map(([key, indexes]) => ({
        ...{ set: Math.floor(key / 256), code: key % 256 },
        indexes: Int32Array.from(indexes),
      }));
      visit(block, all);
    },
    codes,
  );
}
