/** Sums over the labelled pixels of all tiles of a job, of all its runs together. */
import type { JobContext } from '../jobs/index.js';
import { COUNT, listOf, messageCheck, objectOf } from '../json-schema.js';
import { type Analysed, type AnalysisContext, eachTile, meetChecked } from './analysis-run.js';
import { withLabels } from './labels/collection-labels.js';
import type { Labels } from './labels/labels.js';
import { SETS, type SplitKind } from './labels/split.js';
import type { ClassMean } from './pixels/discriminant.js';
import { type BandStatistics, numberOf } from './sums/band-statistics.js';
import { CODED_SUMS, CodedSums, type SentCodedSums } from './sums/coded-sums.js';

/** Sums of some sets of labelled pixels. */
export interface ClassStatistics extends BandStatistics {
  /** By their codes, ascending. */
  classes: ClassMean[];
}

interface SentSet {
  all: SentCodedSums[];
  classes: Record<string, { pixels: number; sums: string[] }>;
}

const CLASS = objectOf({ pixels: COUNT, sums: listOf({ type: 'string', pattern: '^-?[0-9]{1,400}$' }) });
const checkSets = messageCheck(
  listOf(objectOf({ all: listOf(CODED_SUMS), classes: { type: 'object', additionalProperties: CLASS } })),
);

/** Invariant: the sums of all pixels are those of the classes together. */
class SetSums {
  private readonly all: CodedSums;
  private readonly classes = new Map<number, { pixels: number; sums: bigint[] }>();

  constructor(private readonly bands: number) {
    this.all = new CodedSums(bands);
  }

  addCoded(...args: Parameters<CodedSums['add']>): void {
    this.all.add(...args);
  }

  addClass(code: number, pixels: number, sums: readonly bigint[]): void {
    const known = this.classes.get(code) ?? { pixels: 0, sums: new Array<bigint>(this.bands).fill(0n) };
    known.pixels += pixels;
    for (const [b, sum] of sums.entries()) known.sums[b]! += sum;
    this.classes.set(code, known);
  }

  addSent({ all, classes }: SentSet): void {
    this.all.addSent(all);
    for (const [code, { pixels, sums }] of Object.entries(classes))
      this.addClass(Number(code), pixels, sums.map(BigInt));
  }

  sent(): SentSet {
    const entries = [...this.classes].map(
      ([code, { pixels, sums }]) => [code, { pixels, sums: sums.map(String) }] as const,
    );
    return { all: this.all.sent(), classes: Object.fromEntries(entries) };
  }

  /** Throws TW_ANALYSIS_TOO_FEW_PIXELS. */
  statistics(): ClassStatistics {
    const classes = [...this.classes].sort(([a], [b]) => a - b);
    return {
      ...this.all.statistics(),
      classes: classes.map(([code, { pixels, sums }]) => ({
        ...{ code, pixels },
        mean: Float64Array.from(sums, (sum) => numberOf(sum) / pixels),
      })),
    };
  }
}

/** The sums of all runs, of sets of labelled pixels: the same bits wherever the tiles are. */
export interface LabelledSums {
  /** Statistics of some sets together. Throws TW_ANALYSIS_TOO_FEW_PIXELS. */
  of(sets: readonly number[]): ClassStatistics;
  /** Labelled pixels of each code, of each set. */
  counts: Map<number, number>[];
}

export async function labelledSums(
  context: AnalysisContext,
  analysed: Analysed,
  labels: Labels,
  split: SplitKind,
  job: JobContext,
): Promise<LabelledSums> {
  const bands = analysed.bands.length;
  const own = SETS.map(() => new SetSums(bands));
  await eachTile(context, analysed, job, async (tile, file) => {
    const place = { grid: tile.grid, geocode: tile.geocode };
    const found = await withLabels(context, labels, tile, (labels) =>
      context.workers.labelSums({ kind: 'label-sums', file, place, labels, split }, job.signal),
    );
    for (const [i, { all, classes }] of found?.entries() ?? []) {
      if (all.pixels === 0) continue;
      own[i]!.addCoded(file, all);
      for (const [code, { pixels, sums }] of Object.entries(classes))
        own[i]!.addClass(Number(code), pixels, sums);
    }
  });
  const sent = own.map((set) => set.sent());
  const words = await meetChecked(job, sent, checkSets);
  return {
    counts: SETS.map((_, set) => {
      const counts = new Map<number, number>();
      for (const word of words)
        for (const [code, { pixels }] of Object.entries(word[set]!.classes))
          counts.set(Number(code), (counts.get(Number(code)) ?? 0) + pixels);
      return counts;
    }),
    of: (sets) => {
      const total = new SetSums(bands);
      for (const word of words) for (const set of sets) total.addSent(word[set]!);
      return total.statistics();
    },
  };
}
