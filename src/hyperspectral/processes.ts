/** The analyses of a node, as processes. */
import type { Process } from '../jobs/index.js';
import { spectralAnomalyProcess } from './analyses/anomalies.js';
import { spectralClassificationProcess } from './analyses/classification.js';
import { spectralClusteringProcess } from './analyses/clustering.js';
import { continuumRemovalProcess } from './analyses/continuum-removal.js';
import { spectralIndicesProcess } from './analyses/indices.js';
import { spectralMatchingProcess } from './analyses/matching.js';
import { mnfProcess, pcaProcess } from './analyses/pca-mnf.js';
import { spectralResamplingProcess } from './analyses/resampling.js';
import { spectralSmoothingProcess } from './analyses/smoothing.js';
import { spectralStatisticsProcess } from './analyses/statistics.js';
import { spectralUnmixingProcess } from './analyses/unmixing.js';
import type { AnalysisContext } from './analysis.js';
import { mapProcess } from './map-analysis.js';

export function spectralProcesses(context: AnalysisContext): Process[] {
  return [
    spectralStatisticsProcess(context),
    mapProcess(context, pcaProcess),
    mapProcess(context, mnfProcess),
    mapProcess(context, spectralAnomalyProcess),
    mapProcess(context, spectralMatchingProcess),
    mapProcess(context, spectralUnmixingProcess),
    mapProcess(context, spectralClassificationProcess),
    mapProcess(context, spectralIndicesProcess),
    mapProcess(context, spectralSmoothingProcess),
    mapProcess(context, spectralResamplingProcess),
    mapProcess(context, continuumRemovalProcess),
    mapProcess(context, spectralClusteringProcess),
  ];
}
