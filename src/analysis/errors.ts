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

export const oneCollection = defineError(
  'TW_ANALYSIS_COLLECTION',
  400,
  'An analysis reads the tiles of one collection. Name exactly one.',
  (count: number) => `an analysis reads one collection, and the filter names ${count}`,
);

export const singularNoise = defineError(
  'TW_ANALYSIS_SINGULAR_NOISE',
  422,
  'The covariance of the noise has no inverse: bands are copies of each other, or there are fewer pairs of neighbouring pixels than bands. Choose fewer bands, or a larger area.',
  (bands: number) =>
    `the covariance of the noise of ${bands} bands has no inverse; choose fewer bands, or a larger area`,
);

export const noSpectra = defineError(
  'TW_ANALYSIS_NO_SPECTRA',
  422,
  'No tile that matches the filter has a spectrum: a group of at least 16 bands that all have a wavelength. The message names the reasons.',
  (collection: string, reasons: string[]) =>
    `no tile of ${JSON.stringify(collection)} that matches can be analysed${reasons.length > 0 ? `: ${reasons.join('; ')}` : ''}`,
);

export const tileFailed = defineError(
  'TW_ANALYSIS_TILE',
  500,
  'A tile could not be read; the message names the reason. The other tiles are analysed.',
  (tile: string, detail: string) => `${tile} could not be analysed: ${detail}`,
);

export const allFailed = defineError(
  'TW_ANALYSIS_ALL_FAILED',
  500,
  'None of the tiles could be analysed; the message names the first reasons.',
  (count: number, reasons: string[]) => `no tile was analysed, ${count} failed: ${reasons.join('; ')}`,
);
