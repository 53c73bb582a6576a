/** Mean, covariance and correlation of the bands of a collection, as a job. */
import { significant } from '../../html/index.js';
import {
  type ConcludeContext,
  type JobContext,
  mergeCounts,
  type Process,
  TILE_COUNTS_SCHEMA,
  type TileCounts,
} from '../../jobs/index.js';
import { listOf, objectOf } from '../../utils/json-schema.js';
import {
  ANALYSIS_PROPERTIES,
  type AnalysisContext,
  type AnalysisInputs,
  agreeOnBands,
  BANDS_SCHEMA,
  checkAnalysis,
  collectionOf,
  forEachTile,
  requireTiles,
} from '../analysis.js';
import { spectrumChart } from '../charts.js';
import {
  bandsText,
  columns,
  htmlTable,
  matrixFile,
  matrixImage,
  renderAnalysisReport,
  tilesText,
  writeFiles,
} from '../report.js';
import { type SentSumsByEncoding, SUMS_BY_ENCODING_SCHEMA, SumsByEncoding } from '../sums.js';
import type { AnalysedBand } from '../tile-spectrum.js';

/** Result of a run over some of the tiles. */
interface StatsPart extends TileCounts {
  bands: AnalysedBand[];
  sums: SentSumsByEncoding[];
}

export interface StatsResults extends TileCounts {
  collection: string;
  /** Clear pixels that have data in every band. */
  pixels: number;
  bands: (AnalysedBand & { mean: number; std: number })[];
  files: string[];
}

const PART = objectOf({
  ...TILE_COUNTS_SCHEMA,
  bands: BANDS_SCHEMA,
  sums: listOf(SUMS_BY_ENCODING_SCHEMA),
});

export function spectralStatisticsProcess(context: AnalysisContext): Process {
  return {
    id: 'analyse-stats',
    title: 'Statistics of spectra',
    description:
      'Mean, standard deviation, covariance and correlation of the bands of a hyperspectral collection over all clear pixels. The sums are exact, so the result does not depend on which nodes have the tiles.',
    inputs: {
      type: 'object',
      required: ['filter'],
      additionalProperties: false,
      properties: ANALYSIS_PROPERTIES,
    },
    resumable: true,
    usesBarrier: () => true,
    retryInputs: async (inputs, results) => ((results as StatsResults).failures > 0 ? inputs : null),
    check: checkAnalysis,
    merge: (parts) => mergeStats(parts as StatsPart[]),
    part: PART,
    run: (inputs, job) => sumTiles(context, inputs as AnalysisInputs, job),
    conclude: (results, job, inputs) =>
      concludeStats(context, results as StatsPart, inputs as AnalysisInputs, job),
  };
}

async function sumTiles(
  context: AnalysisContext,
  inputs: AnalysisInputs,
  job: JobContext,
): Promise<StatsPart> {
  const analysed = await agreeOnBands(context, inputs, job);
  const { bands, counts } = analysed;
  const sums = new SumsByEncoding(bands.length);
  job.message(`reading ${bands.length} bands of ${analysed.tiles} tiles`);
  await forEachTile(analysed, async (_, file) => {
    const [found] = await analysed.compute({ kind: 'sums', file, of: ['pixels'] });
    sums.add(file, found);
    job.progress({ total: analysed.tiles, done: counts.tiles + 1, failed: counts.failures });
  });
  return { ...counts, bands, sums: sums.sent() };
}

function mergeStats(parts: StatsPart[]): StatsPart {
  const { bands } = parts[0];
  const sums = new SumsByEncoding(bands.length);
  for (const part of parts) sums.addSent(part.sums);
  return { ...mergeCounts(parts), bands, sums: sums.sent() };
}

async function concludeStats(
  { storage }: AnalysisContext,
  part: StatsPart,
  inputs: AnalysisInputs,
  job: ConcludeContext,
): Promise<StatsResults> {
  requireTiles(part);
  const sums = new SumsByEncoding(part.bands.length);
  sums.addSent(part.sums);
  const { pixels, mean, covariance } = sums.statistics();
  const count = part.bands.length;
  const std = mean.map((_, band) => Math.sqrt(covariance[band * count + band]));
  const correlation = covariance.map((value, at) => value / (std[Math.floor(at / count)] * std[at % count]));
  const { bands, sums: _, ...counts } = part;
  const curve = { name: 'mean', values: mean, spread: std };
  const report = renderAnalysisReport({
    title: 'Statistics',
    collection: collectionOf(inputs),
    counts,
    madeAt: Date.now(),
    facts: [bandsText(bands), `${pixels} pixels`, tilesText(part.tiles)],
    sections: [
      { title: 'Mean, and one standard deviation', content: spectrumChart(bands, [curve]) },
      { title: 'Correlation', content: await matrixImage(correlation, count) },
      {
        title: 'Bands',
        content: htmlTable(
          columns(['band'], ['nm', 'mean', 'standard deviation']),
          bands.map(({ name, wavelength }, i) => [
            name,
            wavelength.toFixed(1),
            significant(mean[i]),
            significant(std[i]),
          ]),
        ),
      },
    ],
  });
  const files = {
    'report.html': report,
    'covariance.npy': matrixFile(covariance, [count, count]),
    'correlation.npy': matrixFile(correlation, [count, count]),
  };
  await writeFiles(storage, job, files);
  job.message(`${pixels} pixels of ${part.tiles} tiles`);
  return {
    collection: collectionOf(inputs),
    pixels,
    ...counts,
    bands: bands.map((band, i) => ({ ...band, mean: mean[i], std: std[i] })),
    files: Object.keys(files),
  };
}
