/** Statistics over all tiles of a job, of all its runs together. */
import type { JobContext } from '../jobs/index.js';
import { listOf, messageCheck } from '../json-schema.js';
import { type Analysed, type AnalysisContext, eachTile } from './analysis-run.js';
import type { BandStatistics } from './sums/band-statistics.js';
import { CODED_SUMS, CodedSums, type SentCodedSums } from './sums/coded-sums.js';
import type { SumsTask } from './tasks.js';

const checkSums = messageCheck(listOf(listOf(CODED_SUMS)));

/**
 * Mean and covariance of pixels, and of differences between neighbours, as they are asked for: the same bits in all runs, wherever the
 * tiles are. Reads each tile once for each; tells the progress as the share `half` of the job. Throws TW_ANALYSIS_TOO_FEW_PIXELS.
 */
export async function collectionStatistics(
  context: AnalysisContext,
  analysed: Analysed,
  job: JobContext,
  wanted: readonly SumsTask['of'][],
): Promise<BandStatistics[]> {
  const { bands, tiles, counts } = analysed;
  const own = wanted.map(() => new CodedSums(bands.length));
  job.message(`reading ${bands.length} bands of ${tiles} tiles`);
  await eachTile(context, analysed, job, async (_, file) => {
    for (const [i, of] of wanted.entries()) {
      const sums = await context.workers.sums({ kind: 'sums', file, of }, job.signal);
      // A difference has no offset.
      const offsets = of === 'pixels' ? file.offsets : file.offsets.map(() => 0);
      own[i]!.add({ scales: file.scales, offsets }, sums);
    }
    job.progress({ share: (counts.tiles + 1) / tiles / 2 });
  });
  const total = wanted.map(() => new CodedSums(bands.length));
  for (const sums of await job.meet<SentCodedSums[][]>(own.map((one) => one.sent()))) {
    const fault = checkSums(sums);
    if (fault !== undefined) throw new Error(`a node has sent sums that are none: ${fault}`);
    for (const [i, sent] of sums.entries()) total[i]!.addSent(sent);
  }
  return total.map((sums) => sums.statistics());
}
