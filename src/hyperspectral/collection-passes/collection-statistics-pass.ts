/** Statistics over the tiles of all runs of a job. */
import { listOf, messageCheck } from '../../utils/json-schema.js';
import { tooFewPixels } from '../errors.js';
import { type AnalysedCollection, allGatherChecked, forEachTile } from '../jobs/index.js';
import {
  type BandStatistics,
  SUMS_BY_ENCODING_SCHEMA,
  type SummedQuantity,
  SumsByEncoding,
} from '../reproducible-sums/index.js';

const checkSums = messageCheck(listOf(listOf(SUMS_BY_ENCODING_SCHEMA)));

/**
 * Returns mean and covariance of each wanted quantity, with the same bits in all runs and on any distribution of the tiles. Reads each tile
 * once, and reports progress up to half of the job. Throws TW_ANALYSIS_TOO_FEW_PIXELS.
 */
export async function collectionStatistics(
  analysed: AnalysedCollection,
  wanted: readonly SummedQuantity[],
): Promise<BandStatistics[]> {
  const { job, bands, tiles, counts } = analysed;
  const own = wanted.map(() => new SumsByEncoding(bands.length));
  job.message(`reading ${bands.length} bands of ${tiles} tiles`);
  await forEachTile(analysed, async (_, file) => {
    const found = await analysed.compute({ kind: 'sums', file, of: wanted });
    for (const [i, sums] of found.entries()) {
      // A difference has no offset.
      const offsets = wanted[i] === 'pixels' ? file.offsets : file.offsets.map(() => 0);
      own[i].add({ scales: file.scales, offsets }, sums);
    }
    job.progress({ share: (counts.tiles + 1) / tiles / 2 });
  });
  const total = wanted.map(() => new SumsByEncoding(bands.length));
  const sent = own.map((one) => one.sent());
  for (const sums of await allGatherChecked(job, sent, checkSums))
    for (const [i, one] of sums.entries()) total[i].addSent(one);
  return total.map((sums, i) => {
    if (wanted[i] === 'differences' && sums.count < 2) throw tooFewPixels(sums.count, 'pairs of neighbours');
    return sums.statistics();
  });
}
