/**
 * Codecs of TIFF blocks: JPEG, LERC, LZW, PackBits, Zstandard, and predictors. Invariant: a block that does not decode to the size given by
 * its image is refused before a decoder allocates memory. Imports files of a folder above (types) and the folder `pixels`.
 */

export { type BlockCodec, type BlockShape, JPEG, LERC, libraryCodec } from './compression-libraries.js';
export {
  decodeFloatPredictor,
  decodeHorizontalPredictor,
  decodeHorizontalPredictor64,
  encodeFloatPredictor,
} from './compression-predictor.js';
export { decodeJpeg } from './jpeg.js';
export { decodeLzw } from './lzw.js';
export { decodePackbits } from './packbits.js';
