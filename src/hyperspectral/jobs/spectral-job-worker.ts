/** A worker thread of `HyperspectralPool`. */
import { handleTasksByKind } from '../../async/index.js';
import { labelSums } from '../class-labels/index.js';
import { gradientSums, scoreSums } from '../dense-network-training/index.js';
import { makeOutputTile } from '../output-tiles/index.js';
import { tileSums } from '../reproducible-sums/index.js';
import { drawWeightedPixel, nearestSums, tileExtremes } from '../tile-passes/index.js';
import { labelledPatches, labelledSpectra } from '../training-samples/index.js';
import { pcaOrMnf, whitening } from '../transforms/index.js';

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

export type HyperspectralHandlers = typeof HANDLERS;

handleTasksByKind(HANDLERS, (result) => {
  if (!result || !('files' in result)) return [];
  return result.files.flatMap(({ bytes }) => bytes?.buffer ?? []);
});
