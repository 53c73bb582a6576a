/** Exact sums over tiles whose stored numbers mean different values: a product may have a scale of its own for each scene. */
import { COUNT, listOf, NUMBER, objectOf } from '../../json-schema.js';
import { tooFewPixels } from '../errors.js';
import {
  type BandStatistics,
  ExactSums,
  pooled,
  type SentSums,
  statisticsOf,
  type WholeSums,
} from './band-statistics.js';

/** Encoding of stored numbers: physical value = stored * scale + offset, for each band. */
export interface Coding {
  scales: number[];
  offsets: number[];
}

/** As JSON, for other nodes. */
export interface SentCodedSums extends Coding {
  sums: SentSums;
}

const WHOLE = { type: 'string', pattern: '^-?[0-9]{1,400}$' } as const;

/** JSON Schema of `SentCodedSums`. */
export const CODED_SUMS = objectOf({
  scales: listOf(NUMBER),
  offsets: listOf(NUMBER),
  sums: objectOf({ pixels: COUNT, sums: listOf(WHOLE), products: listOf(WHOLE) }),
});

/** Invariant: one entry for each coding, by its JSON. */
export class CodedSums {
  private readonly sums = new Map<string, ExactSums>();

  constructor(private readonly bands: number) {}

  add({ scales, offsets }: Coding, sums: WholeSums): void {
    this.of({ scales, offsets }).add(sums);
  }

  addSent(sent: readonly SentCodedSums[]): void {
    for (const { scales, offsets, sums } of sent) this.of({ scales, offsets }).addSent(sums);
  }

  sent(): SentCodedSums[] {
    return [...this.sums].map(([key, sums]) => ({ ...(JSON.parse(key) as Coding), sums: sums.sent() }));
  }

  /** Pixels added so far. */
  get count(): number {
    return [...this.sums.values()].reduce((sum, { count }) => sum + count, 0);
  }

  /** Mean and covariance of physical values, the same bits wherever the tiles are. Throws TW_ANALYSIS_TOO_FEW_PIXELS. */
  statistics(): BandStatistics {
    const sets = [...this.sums].filter(([, { count }]) => count > 0).sort(([a], [b]) => (a < b ? -1 : 1));
    if (sets.length === 0) throw tooFewPixels(0);
    return statisticsOf(
      pooled(
        sets.map(([key, sums]) => {
          const { scales, offsets } = JSON.parse(key) as Coding;
          return sums.moments(scales, offsets);
        }),
      ),
    );
  }

  private of(coding: Coding): ExactSums {
    const key = JSON.stringify(coding);
    const known = this.sums.get(key) ?? new ExactSums(this.bands);
    this.sums.set(key, known);
    return known;
  }
}
