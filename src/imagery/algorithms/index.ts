/** titiler's `algorithm`: planes of values become others. A folder of its own: pure functions of planes, a file for each kind. */
export {
  ALGORITHMS,
  type Algorithm,
  applyAlgorithm,
  marginOf,
  parseAlgorithm,
  planesMade,
  rangeOf,
} from './algorithm.js';
export type { PixelSize, Planes } from './definition.js';
