export type { Expression } from './ast.js';
export { badExpression, listBands, unknownBand } from './errors.js';
export { parseExpression, parseExpressions } from './parser.js';
export { compile, evaluate, type Program } from './program.js';
export {
  type BandPlace,
  bandOrExpression,
  bandsOfAssets,
  findBands,
  layoutOf,
  plainName,
  type Resolved,
  resolveBands,
  wavelengthNamed,
} from './resolve-bands.js';
export { SPECTRAL_INDICES, type SpectralIndex } from './spectral-indices.js';
