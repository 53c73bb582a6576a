/** Errors of analyses. */
import { defineError } from '../errors.js';

export const noSimd = defineError(
  'TW_ANALYSIS_NO_SIMD',
  501,
  'Analyses need a processor with WebAssembly SIMD, which all that run Node 20 on x86-64 and arm64 have.',
  () => 'this machine has no WebAssembly SIMD, which analyses need',
);

export const tooFewPixels = defineError(
  'TW_ANALYSIS_TOO_FEW_PIXELS',
  422,
  'A covariance needs two pixels that hold data in every band. Choose a larger area, or fewer bands.',
  (pixels: number) => `${pixels} pixels hold data in every band, and a covariance needs 2`,
);
