/**
 * Reads the spectra of a tile, and of the tiles around it, block by block. Invariant: memory holds one block of all bands. Imports the
 * parts `derive`, `expressions`, `grid`, `imagery`, `query`, `raster` and `storage` (types).
 */

export { findNeighbourSpectra, neighbourFiles } from './read-neighbour-spectra.js';
export {
  eachBlock,
  pixelNumber,
  readMaskCodes,
  type SpectrumBlock,
  type SpectrumFile,
  spectrumAt,
} from './read-spectrum-blocks.js';
export {
  type AnalysedBand,
  bandSetKey,
  spectralGroups,
  spectrumFile,
  type TileSpectrum,
  tileSpectrum,
} from './readable-tile-spectrum.js';
export {
  eachBlockWithNeighbours,
  eachPixelWithNeighbours,
  type Neighbour,
} from './spectrum-neighbour-blocks.js';
