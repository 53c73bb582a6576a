/** A worker thread of `AnalysisPool`. */
import { handleTasksByKind } from '../async/index.js';
import { gradientSums } from './dense-networks/gradient.js';
import { scoreSums } from './dense-networks/score-pixels.js';
import { labelSums } from './labels/labelled-pixels.js';
import { makeOutputTile } from './output-tiles/make-output-tile.js';
import { tileSums } from './reproducible-sums/tile-sums.js';
import { nearestSums } from './tile-passes/nearest-centres.js';
import { tileExtremes } from './tile-passes/tile-extremes.js';
import { drawWeightedPixel } from './tile-passes/weighted-draw.js';
import { labelledPatches } from './training-samples/labelled-patches.js';
import { labelledSpectra } from './training-samples/labelled-spectra.js';
import { pcaOrMnf } from './transforms/pca-mnf.js';
import { whitening } from './transforms/whitening.js';

const HANDLERS = {
  sums: tileSums,
  components: pcaOrMnf,
  whitening,
  extremes: tileExtremes,
  draw: drawWeightedPixel,
  nearest: nearestSums,
  'label-sums': labelSums,
  spectra: labelledSpectra,
  patches: labelledPatches,
  gradient: gradientSums,
  score: scoreSums,
  map: makeOutputTile,
};

export type AnalysisHandlers = typeof HANDLERS;

handleTasksByKind(HANDLERS, (result) => {
  if (!result || !('files' in result)) return [];
  return result.files.flatMap(({ bytes }) => bytes?.buffer ?? []);
});
