/**
 * Values computed from the spectrum of a pixel, 64 pixels at a time in WebAssembly: projections, detectors, abundances, continuum, dense
 * networks, local RX. Invariant: a result depends only on its pixel (for local RX, on its window), not on the other pixels of a panel.
 * Imports the folders `numeric`, `reproducible-sums` (types) and `spectrum-reading` and the parts `expressions` and `raster`.
 */

export { AbundanceSolver } from './abundance-solver-method.js';
export { continuumRemoval } from './continuum-removal-method.js';
export {
  countOf,
  type DenseLayer,
  identityEncoding,
  layerViews,
  PanelNetwork,
  padRows,
  parseNetwork,
  type Sizes,
  type Standardisation,
  saveClassifier,
  softmax,
  standardiseValue,
  transposed,
  withTemperature,
} from './dense-networks/index.js';
export { type LocalRx, localRxDistances, MIN_PIXELS_PER_COMPONENT } from './local-rx-method.js';
export { PANEL_PIXELS, PixelPanel } from './pixel-method-panel.js';
export {
  eachPanel,
  layersMethod,
  MIN_DIVERGENCE_VALUE,
  type PixelMethod,
  pixelFunction,
} from './pixel-methods.js';
