/**
 * Files whose format is not known yet: opens them without following pipes, reads the first bytes, detects the type by its signature, and
 * applies georeferencing given by the user. Invariant: reads no more than a prefix of a file. Imports files of a folder above (types).
 */

export {
  type GeoreferencingOverride,
  georeferenceByCorners,
} from '../metadata/metadata-georeferencing-override.js';
export {
  describeSignature,
  detectFileType,
  type FileType,
  type RasterType,
  SIGNATURE_BYTES,
} from './file-signature.js';
export { MAX_BANDS, MAX_BLOCK_BYTES, MAX_SIDE_PIXELS, requireSupportedSize } from './raster-file-limits.js';
export {
  type ByteReader,
  openFile,
  readSmallFile,
  readStart,
  type SourceFile,
  withFile,
} from './raster-source-file.js';
