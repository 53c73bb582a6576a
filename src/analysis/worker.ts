/** An analysis thread: sums up the pixels of tiles, and makes tiles of them. */
import { serveTasks } from '../raster/index.js';
import { gradientSums } from './classifier/gradient.js';
import { labelledSpectra } from './classifier/labelled-spectra.js';
import { scoreSums } from './classifier/score.js';
import { labelSums } from './labels/labelled-pixels.js';
import { labelledPatches } from './nets/patches.js';
import { components } from './pixels/components.js';
import { draw } from './pixels/draw.js';
import { extremes } from './pixels/extremes.js';
import { mapTile } from './pixels/map-tile.js';
import { nearestSums } from './pixels/nearest-centres.js';
import { whitening } from './pixels/whitening.js';
import { tileSums } from './sums/tile-sums.js';
import type { AnalysisResult, AnalysisTask } from './tasks.js';

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
