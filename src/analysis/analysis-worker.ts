/** An analysis thread: sums up the pixels of tiles, and makes tiles of them. */
import { serveTasks } from '../async/index.js';
import type { AnalysisResult, AnalysisTask } from './analysis-tasks.js';
import { labelledPatches } from './convolutional-networks/labelled-patches.js';
import { gradientSums } from './dense-networks/gradient.js';
import { labelledSpectra } from './dense-networks/labelled-spectra.js';
import { scoreSums } from './dense-networks/score-pixels.js';
import { labelSums } from './labels/labelled-pixels.js';
import { mapTile } from './output-tiles/make-output-tile.js';
import { nearestSums } from './passes/nearest-centres.js';
import { extremes } from './passes/tile-extremes.js';
import { draw } from './passes/weighted-draw.js';
import { tileSums } from './reproducible-sums/tile-sums.js';
import { components } from './transforms/pca-mnf.js';
import { whitening } from './transforms/whitening.js';

serveTasks<AnalysisTask, AnalysisResult>(
  (task) => {
    switch (task.kind) {
      case 'sums':
        return tileSums(task);
      case 'components':
        return components(task);
      case 'whitening':
        return whitening(task);
      case 'extremes':
        return extremes(task);
      case 'draw':
        return draw(task) ?? null;
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
        return mapTile(task);
    }
  },
  (result) => {
    if (result === null || !('files' in result)) return [];
    return result.files.flatMap(({ bytes }) => bytes?.buffer ?? []);
  },
);
