/** A worker thread of `HyperspectralPool`. */
import { handleTasksByKind } from '../async/index.js';
import { pcaOrMnf } from './components.js';
import { gradientSums, scoreSums } from './dense-training.js';
import { labelCounts, labelSums } from './labelled-pixels.js';
import { whitening } from './linear-algebra.js';
import { makeOutputTile, tally } from './output-tile.js';
import { labelledPatches, labelledSpectra } from './samples.js';
import { tileSums } from './sums.js';
import { drawWeightedPixel, nearestSums, tileExtremes } from './tile-passes.js';

const HANDLERS = {
  sums: tileSums,
  components: pcaOrMnf,
  whitening,
  extremes: tileExtremes,
  draw: drawWeightedPixel,
  nearest: nearestSums,
  'label-counts': labelCounts,
  'label-sums': labelSums,
  spectra: labelledSpectra,
  patches: labelledPatches,
  gradient: gradientSums,
  score: scoreSums,
  map: makeOutputTile,
  tally,
};

export type HyperspectralHandlers = typeof HANDLERS;

handleTasksByKind(HANDLERS, (result) => {
  if (!result || !('files' in result)) return [];
  return result.files.flatMap(({ bytes }) => bytes?.buffer ?? []);
});
