/** Exact sums over tiles whose stored numbers have different encodings: a product may have another scale in each scene. */
import { COUNT, listOf, NUMBER, objectOf } from '../../utils/json-schema.js';
import { tooFewPixels } from '../errors.js';
import {
  type BandStatistics,
  bandStatistics,
  ExactSums,
  type FixedPointSums,
  poolMoments,
  type SentSums,
} from './exact-band-sums.js';

/** Encoding of stored numbers: physical value = stored * scale + offset, for each band. */
export interface ValueEncoding {
  scales: number[];
  offsets: number[];
}

/** As JSON, for other nodes. */
export interface SentSumsByEncoding extends ValueEncoding {
  sums: SentSums;
}

const WHOLE = { type: 'string', pattern: '^-?[0-9]{1,400}$' } as const;

/** JSON Schema of `SentSumsByEncoding`. */
export const SUMS_BY_ENCODING_SCHEMA = objectOf({
  scales: listOf(NUMBER),
  offsets: listOf(NUMBER),
  sums: objectOf({ pixels: COUNT, sums: listOf(WHOLE), products: listOf(WHOLE) }),
});

/** Invariant: `sums` has one entry for each encoding, by its JSON. */
export class SumsByEncoding {
  private readonly sums = new Map<string, ExactSums>();

  constructor(private readonly bands: number) {}

  add({ scales, offsets }: ValueEncoding, sums: FixedPointSums): void {
    this.of({ scales, offsets }).add(sums);
  }

  addSent(sent: readonly SentSumsByEncoding[]): void {
    for (const { scales, offsets, sums } of sent) this.of({ scales, offsets }).addSent(sums);
  }

  sent(): SentSumsByEncoding[] {
    return [...this.sums].map(([key, sums]) => ({
      ...(JSON.parse(key) as ValueEncoding),
      sums: sums.sent(),
    }));
  }

  /** Pixels added so far. */
  get count(): number {
    return [...this.sums.values()].reduce((sum, { count }) => sum + count, 0);
  }

  /** Mean and covariance of physical values, with the same bits on any distribution of the tiles. Throws TW_ANALYSIS_TOO_FEW_PIXELS. */
  statistics(): BandStatistics {
    const sets = [...this.sums].filter(([, { count }]) => count > 0).sort(([a], [b]) => (a < b ? -1 : 1));
    if (sets.length === 0) throw tooFewPixels(0);
    return bandStatistics(
      poolMoments(
        sets.map(([key, sums]) => {
          const { scales, offsets } = JSON.parse(key) as ValueEncoding;
          return sums.moments(scales, offsets);
        }),
      ),
    );
  }

  private of(encoding: ValueEncoding): ExactSums {
    const key = JSON.stringify(encoding);
    const known = this.sums.get(key) ?? new ExactSums(this.bands);
    this.sums.set(key, known);
    return known;
  }
}
