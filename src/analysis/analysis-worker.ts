/** An analysis thread: sums up the pixels of tiles, and makes tiles of them. */
import { handleTasks } from '../async/index.js';
import type { AnalysisResult, AnalysisTask } from './analysis-tasks.js';
import { labelledPatches } from './convolutional-networks/labelled-patches.js';
import { gradientSums } from './dense-networks/gradient.js';
import { labelledSpectra } from './dense-networks/labelled-spectra.js';
import { scoreSums } from './dense-networks/score-pixels.js';
import { labelSums } from './labels/labelled-pixels.js';
import { makeOutputTile } from './output-tiles/make-output-tile.js';
import { nearestSums } from './passes/nearest-centres.js';
import { tileExtremes } from './passes/tile-extremes.js';
import { drawWeightedPixel } from './passes/weighted-draw.js';
import { tileSums } from './reproducible-sums/tile-sums.js';
import { pcaOrMnf } from './transforms/pca-mnf.js';
import { whitening } from './transforms/whitening.js';

handleTasks<AnalysisTask, AnalysisResult>(
  (task) => {
    switch (task.kind) {
      case 'sums':
        return tileSums(task);
      case 'components':
        return pcaOrMnf(task);
      case 'whitening':
        return whitening(task);
      case 'extremes':
        return tileExtremes(task);
      case 'draw':
        return drawWeightedPixel(task) ?? null;
      case 'nearest':
        return nearestSums(task);
      case 'label-sums':
        return labelSums(task);
      case 'spectra':
        return labelledSpectra(task);
      case 'gradient':
        return gradientSums(task);
      case 'score':
        return scoreSums(task);
      case 'patches':
        return labelledPatches(task);
      case 'map':
        return makeOutputTile(task);
    }
  },
  (result) => {
    if (result === null || !('files' in result)) return [];
    return result.files.flatMap(({ bytes }) => bytes?.buffer ?? []);
  },
);
