/**
 * Dense networks as data, their application to the pixels of a panel, and their files. Invariant: sums are computed in the order of the
 * inputs. Imports files of a folder above and the folder `reproducible-sums` (types).
 */
export {
  countOf,
  type DenseLayer,
  layerViews,
  type Sizes,
  type Standardisation,
  standardiseValue,
  transposed,
  withTemperature,
} from './dense-network.js';
export { parseNetwork, saveClassifier } from './dense-network-file.js';
export { identityEncoding, PanelNetwork, padRows, softmax } from './dense-network-panel.js';
