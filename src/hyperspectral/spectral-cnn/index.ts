/**
 * Convolutional networks of spectra and of the pixels around a pixel: building, training on all nodes, and application in child processes
 * with an engine. Invariant: all nodes add gradients in the same order, so the weights have the same bits everywhere. Imports the folders
 * `class-labels`, `dense-network-training`, `jobs`, `numeric`, `output-tiles`, `pixel-methods`, `spectrum-reading` and `training-samples`
 * and the parts `derive` (types), `engines`, `jobs` (types), `raster`, `storage` and `training`.
 */

export {
  isNet,
  NET_SETTINGS,
  NETS,
  type NetMethod,
  type NetName,
  netMethod,
  patchSide,
} from './spectral-cnn-specs.js';
export { type CamSums, NetSession } from './spectral-cnn-training-session.js';
export { withMappers } from './spectral-cnn-workers.js';
export { type TrainedNet, trainNet } from './train-spectral-cnn.js';
