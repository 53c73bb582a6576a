/**
 * Metadata of bands that several formats share: GDAL's XML, ODL text, wavelengths and their units. May import crs, file, pixels
 * and the types of raster.
 */
export { gdalMetadataXml, parseGdalMetadata } from './gdal-metadata.js';
export { type OdlNode, odlList, odlNodes, parseOdl } from './odl.js';
export { nodataOfPam, type Pam, pamPath, placeWithPam, readPam } from './pam.js';
export { isHyperspectral, nearestBand, spectralTags } from './spectral-tags.js';
export {
  isWavelength,
  MAX_WAVELENGTH_NM,
  MIN_WAVELENGTH_NM,
  toNanometres,
  toNanometreWidths,
  type Wavelengths,
} from './wavelength-units.js';
export { elementsOf, localName, parseXmlTree, textOf, type XmlElement } from './xml-tree.js';
