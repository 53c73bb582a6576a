/**
 * Band expressions: the parser, the compiler to a loop over pixels, and the lookup of bands by name, common name, wavelength or number.
 * Used by maps, time series, tensors, spectral indices and the targets of models. Invariant: a compiled program is plain data, and the same
 * text resolves to the same bands everywhere. Imports the parts `raster` and `storage` (types).
 */

export {
  type BandIndex,
  bandLayoutKey,
  bandsOfAssets,
  findBands,
  hasBands,
  parseBandOrExpression,
  parseWavelengthName,
  type ResolvedBands,
  resolveBands,
  SPECTRAL_INDICES,
  toIdentifier,
} from './bands.js';
export { badExpression, unknownBand } from './errors.js';
export type { Expression } from './parser.js';
export { parseExpression, parseExpressions } from './parser.js';
export { compileExpression, evaluateProgram, type Program } from './program.js';
