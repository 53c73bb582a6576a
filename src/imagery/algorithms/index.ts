/**
 * titiler's parameter `algorithm`: pure functions from planes to planes, one file for each kind. Invariant: a pixel without data stays
 * without data unless a parameter gives it a value. Imports files of a folder above and the folder `colours`.
 */

export type { MapPixelSize, Planes } from './algorithm-definition.js';
export {
  ALGORITHMS,
  type Algorithm,
  applyAlgorithm,
  borderPixels,
  outputPlaneCount,
  outputRange,
  parseAlgorithm,
} from './image-algorithm.js';
