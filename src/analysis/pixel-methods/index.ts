/**
 * Values computed from the spectrum of a pixel, 64 pixels at a time in WebAssembly: projections, detectors, abundances, continuum, dense
 * networks, local RX. Invariant: a result depends only on its pixel (for local RX, on its window), not on the other pixels of a panel.
 * Imports the folders numeric, reproducible-sums and tile-reading and the parts expressions and raster.
 */
export { continuumRemoval } from './continuum-removal.js';
export {
  countOf,
  type DenseLayer,
  type DenseNetwork,
  layerViews,
  type Sizes,
  type Standardisation,
  standardiseValue,
  transposed,
  withTemperature,
} from './dense-network.js';
export { type LocalRx, localRxDistances, MIN_PIXELS_PER_COMPONENT } from './local-rx.js';
export { AbundanceSolver } from './nnls-solver.js';
export { identityEncoding, PanelNetwork, padRows, softmax } from './panel-network.js';
export {
  eachPanel,
  layersMethod,
  MIN_DIVERGENCE_VALUE,
  type PixelMethod,
  pixelFunction,
} from './pixel-methods.js';
export { PANEL_PIXELS, PixelPanel } from './pixel-panel.js';
