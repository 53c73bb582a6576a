/** titiler's `algorithm`: planes of values become others. A folder of its own: pure functions of planes, a file for each kind. */
export {
  ALGORITHMS,
  type Algorithm,
  applyAlgorithm,
  borderPixels,
  outputPlaneCount,
  outputRange,
  parseAlgorithm,
} from './algorithm.js';
export type { MapPixelSize, Planes } from './definition.js';
