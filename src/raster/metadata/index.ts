/**
 * Metadata of bands that several formats share: GDAL's XML, ODL text, wavelengths and their units. Imports files of a folder above (types)
 * and the folders `crs` and `pixels`.
 */
export { gdalMetadataXml, parseGdalMetadata } from './metadata-gdal-items.js';
export { odlList, odlNodes, parseOdl } from './metadata-odl.js';
export { nodataOfPam, type Pam, pamPath, placeWithPam, readPam } from './metadata-pam.js';
export { isHyperspectral, nearestBand, spectralTags } from './spectral-metadata-tags.js';
export {
  isWavelength,
  MAX_WAVELENGTH_NM,
  MIN_WAVELENGTH_NM,
  toNanometres,
  toNanometreWidths,
  type Wavelengths,
} from './wavelength-metadata-units.js';
export { elementsOf, localName, parseXmlTree, textOf, type XmlElement } from './xml-metadata-tree.js';
