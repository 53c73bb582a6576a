/** Sums over the labelled pixels of all runs of a job. */
import { listOf, messageCheck, objectOf } from '../../utils/json-schema.js';
import {
  type LabelSums,
  type Labels,
  openLabels,
  SETS,
  type SplitKind,
  withLabels,
} from '../class-labels/index.js';
import { type AnalysedCollection, allGatherChecked, forEachTile } from '../jobs/index.js';
import {
  type BandStatistics,
  CLASS_SUMS,
  type ClassMean,
  ClassSums,
  type SentClassSums,
  type SentSumsByEncoding,
  SUMS_BY_ENCODING_SCHEMA,
  SumsByEncoding,
  type ValueEncoding,
} from '../reproducible-sums/index.js';

/** Sums of some sets of labelled pixels. */
export interface ClassStatistics extends BandStatistics {
  /** By ascending code. */
  classes: ClassMean[];
}

interface SentSet {
  all: SentSumsByEncoding[];
  classes: SentClassSums;
}

const checkSets = messageCheck(
  listOf(objectOf({ all: listOf(SUMS_BY_ENCODING_SCHEMA), classes: CLASS_SUMS })),
);

/** Invariant: `all` and `classes` are sums over the same pixels. */
class SetSums {
  private readonly all: SumsByEncoding;
  private readonly classes = new ClassSums();

  constructor(bands: number) {
    this.all = new SumsByEncoding(bands);
  }

  add(encoding: ValueEncoding, { all, classes }: LabelSums): void {
    this.all.add(encoding, all);
    this.classes.add(classes);
  }

  addSent({ all, classes }: SentSet): void {
    this.all.addSent(all);
    this.classes.addSent(classes);
  }

  sent(): SentSet {
    return { all: this.all.sent(), classes: this.classes.sent() };
  }

  /** Throws TW_ANALYSIS_TOO_FEW_PIXELS. */
  statistics(): ClassStatistics {
    return { ...this.all.statistics(), classes: this.classes.means() };
  }
}

/** Sums of all runs over sets of labelled pixels, with the same bits on any distribution of the tiles. */
export interface LabelledSums {
  /** Statistics of some sets together. Throws TW_ANALYSIS_TOO_FEW_PIXELS. */
  of(sets: readonly number[]): ClassStatistics;
  /** For each set: labelled pixels by code. */
  counts: Map<number, number>[];
}

export async function labelledSums(
  analysed: AnalysedCollection,
  labels: Labels,
  split: SplitKind,
): Promise<LabelledSums> {
  const bands = analysed.bands.length;
  const own = SETS.map(() => new SetSums(bands));
  const open = await openLabels(labels);
  await forEachTile(analysed, async (tile, file) => {
    const cell = { grid: tile.grid, geocode: tile.geocode };
    const found = await withLabels(analysed.context, open, tile, (labels) =>
      analysed.compute({ kind: 'label-sums', file, cell, labels, split }),
    );
    for (const [i, sums] of found?.entries() ?? []) if (sums.all.pixels > 0) own[i].add(file, sums);
  });
  const sent = own.map((set) => set.sent());
  const messages = await allGatherChecked(analysed.job, sent, checkSets);
  return {
    counts: SETS.map((_, set) => {
      const counts = new Map<number, number>();
      for (const message of messages)
        for (const [code, { pixels }] of Object.entries(message[set].classes))
          counts.set(Number(code), (counts.get(Number(code)) ?? 0) + pixels);
      return counts;
    }),
    of: (sets) => {
      const total = new SetSums(bands);
      for (const message of messages) for (const set of sets) total.addSent(message[set]);
      return total.statistics();
    },
  };
}
