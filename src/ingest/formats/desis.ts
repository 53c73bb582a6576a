/**
 * DESIS level 2A as delivered: a cube of surface reflectance from 401 to 999 nm, its metadata, and a raster of flags (DESIS
 * Product Specification, PAV-DLR-ICD-003). Wavelengths and scales are in the metadata and not in the GeoTIFF.
 */
import { basename } from 'node:path';
import {
  elementsOf,
  Mask,
  openRaster,
  type RasterHeader,
  textOf,
  type XmlElement,
} from '../../raster/index.js';
import { groupBands, spectralCubeBands, type UngroupedBand } from '../bands.js';
import { badMetadata, missingBand, notRecognised } from '../errors.js';
import { measurePixelSize } from '../georeferencing.js';
import { type ProductFormat, type Scene, slugify } from '../scene.js';
import { datetimeOption } from './acquisition-time.js';
import {
  findMetadataFile,
  findProductFiles,
  numberElement,
  readXml,
  requiredNumber,
  temporalCoverage,
} from './metadata.js';
import { DLR } from './providers.js';
import { buildQualityLookups, qualityBand } from './quality.js';

const METADATA = /^(DESIS-HSI-L2A-.*)-METADATA\.XML$/i;
const CUBE = /-SPECTRAL_IMAGE\.TIFF?$/i;
const FLAGS_FILE = /-QL_QUALITY-2\.TIFF?$/i;
/**
 * The version of the processor at the end of the stem. It is not part of the id, so that a reprocessed delivery replaces the
 * first one.
 */
const VERSION = /-V\d+$/i;
const NODATA = -32768;

export const desis: ProductFormat = {
  name: 'DESIS L2A',

  async identify(candidate) {
    return findMetadataFile(candidate, METADATA) !== undefined;
  },

  async describe(candidate, options) {
    const { path } = candidate;
    const metadata = findMetadataFile(candidate, METADATA);
    if (metadata === undefined) throw notRecognised(path, 'it is not a DESIS product');
    const root = await readXml(metadata);
    const stem = METADATA.exec(basename(metadata))![1]!;
    const files = await findProductFiles(candidate, metadata, stem);
    const cube = files.find((file) => CUBE.test(file));
    if (!cube)
      throw missingBand(path, '*-SPECTRAL_IMAGE.tif', 'The cube is not there; download the product again.');
    const flags = files.find((file) => FLAGS_FILE.test(file));
    const bands = spectralBands(await openRaster(cube), root, metadata);
    const groups = groupBands([...bands, ...(flags ? flagBands(await openRaster(flags)) : [])]);
    return [
      {
        path,
        id: options.id ?? slugify(stem.replace(VERSION, '')),
        collection: {
          id: options.collection ?? 'desis-l2a',
          title: 'DESIS L2A surface reflectance',
          license: 'proprietary',
          licenseUrl: 'https://www.dlr.de/en/eoc/research-transfer/projects-missions/desis',
          attribution: 'DESIS data (c) Teledyne Brown Engineering and DLR [year]. All rights reserved.',
          providers: [DLR],
        },
        platform: options.platform ?? 'iss',
        ...(datetimeOption(options) ?? temporalCoverage(root, 'endTime', metadata)),
        groups,
        quality: buildQualityLookups(groups, MASK_CODES),
        warnings: flags ? [] : ['the product has no raster *-QL_QUALITY-2.tif, so cloud is not assessed'],
      },
    ] satisfies Scene[];
  },
};

/** Throws TW_INGEST_BAD_METADATA if it does not list the bands of the cube. */
function spectralBands(header: RasterHeader, root: XmlElement, metadata: string): UngroupedBand[] {
  // Elsewhere, elements of the same name describe the optics of each band.
  const listed = elementsOf(root, 'bandCharacterisation').flatMap((list) => elementsOf(list, 'band'));
  if (listed.length !== header.bands)
    throw badMetadata(metadata, `it lists ${listed.length} bands, and the cube has ${header.bands}`);
  const bands = listed.map((element, index) => {
    const fwhm = numberElement(element, 'wavelengthWidthOfBand');
    const number = textOf(element, 'bandNumber') ?? String(index + 1);
    const required = (name: string) => requiredNumber(element, number, name, metadata);
    return {
      wavelength: required('wavelengthCenterOfBand'),
      ...(fwhm !== undefined && fwhm > 0 && { fwhm }),
      scale: required('gainOfBand'),
      offset: required('offsetOfBand'),
    };
  });
  return spectralCubeBands(header, measurePixelSize(header), header.nodata ?? NODATA, bands);
}

/** The first bands of the raster of flags, in its order: 1 if the flag is set. Aerosol and water vapour follow. */
const FLAGS = ['shadow', 'land', 'snow', 'hazeLand', 'hazeWater', 'cloudLand', 'cloudWater', 'water'];

function flagBands(header: RasterHeader): UngroupedBand[] {
  if (header.bands < FLAGS.length)
    throw missingBand(
      header.path,
      FLAGS[header.bands]!,
      `It has ${header.bands} bands; download the product again.`,
    );
  const resolution = measurePixelSize(header);
  return FLAGS.map((name, index) => qualityBand(name, header, index, resolution));
}

const flag = (code: number) => (value: number) => (value > 0 ? code : Mask.notAssessed);

/** Cloud, shadow, snow; land and water without these flags are clear. Haze is not cloud. */
const MASK_CODES = {
  cloudLand: flag(Mask.cloud),
  cloudWater: flag(Mask.cloud),
  shadow: flag(Mask.shadow),
  snow: flag(Mask.snow),
  land: flag(Mask.clear),
  water: flag(Mask.clear),
};
