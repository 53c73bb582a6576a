/**
 * EnMAP level 2A as delivered: a cube of surface reflectance, its metadata, and quality rasters (EnMAP HSI Level 1B / Level 1C
 * / Level 2A Product Specification, EN-PCV-ICD-2009-2). Wavelengths are in the metadata and not in the GeoTIFF.
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
import { buildQualityLookups, flagCode, qualityBand } from './quality.js';

const METADATA = /^(ENMAP.*L2A.*)-METADATA\.XML$/i;
const CUBE = /-SPECTRAL_IMAGE(_COG)?\.TIFF?$/i;
/** Scale of reflectance if the metadata lacks it. */
const SCALE = 0.0001;
const NODATA = -32768;

export const enmap: ProductFormat = {
  name: 'EnMAP L2A',

  async identify(candidate) {
    return findMetadataFile(candidate, METADATA) !== undefined;
  },

  async describe(candidate, options) {
    const metadata = findMetadataFile(candidate, METADATA);
    if (metadata === undefined) throw notRecognised(candidate.path, 'it is not an EnMAP product');
    const root = await readXml(metadata);
    const stem = METADATA.exec(basename(metadata))![1]!;
    const files = await findProductFiles(candidate, metadata, stem);
    const cube = files.find((file) => CUBE.test(file));
    if (!cube)
      throw missingBand(
        candidate.path,
        '*-SPECTRAL_IMAGE.TIF',
        'The cube is not there; download the product again.',
      );
    const header = await openRaster(cube);
    const quality = await qualityRasters(files);
    const groups = groupBands([...spectralBands(header, root, metadata), ...quality]);
    const warnings =
      groups.length === 1 ? ['the product has no quality rasters, so cloud is not assessed'] : [];
    return [
      {
        path: candidate.path,
        id: options.id ?? slugify(stem),
        collection: {
          id: options.collection ?? 'enmap-l2a',
          title: 'EnMAP L2A surface reflectance',
          license: 'proprietary',
          licenseUrl:
            'https://www.enmap.org/data/doc/EN-PCV-ICD-2009-2_HSI_Product_Specification_Level1_Level2.pdf',
          attribution: 'EnMAP data (c) DLR [year]. All rights reserved.',
          providers: [DLR],
        },
        platform: options.platform ?? 'enmap',
        ...(datetimeOption(options) ?? temporalCoverage(root, 'stopTime', metadata)),
        groups,
        quality: buildQualityLookups(groups, MASK_CODES),
        warnings,
      },
    ] satisfies Scene[];
  },
};

const QUALITY = {
  cloud: 'QL_QUALITY_CLOUD',
  cloudShadow: 'QL_QUALITY_CLOUDSHADOW',
  cirrus: 'QL_QUALITY_CIRRUS',
  haze: 'QL_QUALITY_HAZE',
  snow: 'QL_QUALITY_SNOW',
  classes: 'QL_QUALITY_CLASSES',
} as const;

/** Throws TW_INGEST_BAD_METADATA if it does not list the bands of the cube. */
function spectralBands(header: RasterHeader, root: XmlElement, metadata: string): UngroupedBand[] {
  const listed = elementsOf(root, 'bandCharacterisation').flatMap((list) => elementsOf(list, 'bandID'));
  if (listed.length !== header.bands)
    throw badMetadata(metadata, `it lists ${listed.length} bands, and the cube has ${header.bands}`);
  const isDelivered = deliveredBands(root);
  const bands = listed.map((element) => {
    const fwhm = numberElement(element, 'FWHMOfBand');
    const required = (name: string) =>
      requiredNumber(element, element.attributes['number'] ?? '?', name, metadata);
    const numberOr = (name: string, otherwise: number) =>
      textOf(element, name) === undefined ? otherwise : required(name);
    return {
      scale: numberOr('GainOfBand', SCALE),
      offset: numberOr('OffsetOfBand', 0),
      wavelength: required('wavelengthCenterOfBand'),
      ...(fwhm !== undefined && fwhm > 0 && { fwhm }),
      ...(!isDelivered(Number(element.attributes['number'])) && { good: false as const }),
    };
  });
  return spectralCubeBands(header, measurePixelSize(header), header.nodata ?? NODATA, bands);
}

/** Bad bands: bands that are not in the lists of expected channels, and empty bands, whose statistics have no deviation. */
function deliveredBands(root: XmlElement): (number: number) => boolean {
  const lists = elementsOf(root, 'expectedChannelsList').map(({ text }) => text);
  const expected = new Set(
    lists.flatMap((text) =>
      text
        .split(/[\s,;]+/)
        .filter(Boolean)
        .map(Number),
    ),
  );
  const empty = new Set(
    elementsOf(root, 'bandStatistics')
      .flatMap((list) => elementsOf(list, 'bandID'))
      .filter((band) => numberElement(band, 'stdDeviation') === 0)
      .map(({ attributes }) => Number(attributes['number'])),
  );
  return (number) => (expected.size === 0 || expected.has(number)) && !empty.has(number);
}

/** The existing rasters; a product may lack some. */
async function qualityRasters(files: string[]): Promise<UngroupedBand[]> {
  const bands: UngroupedBand[] = [];
  for (const [name, ending] of Object.entries(QUALITY)) {
    const file = files.find((one) => new RegExp(`-${ending}\\.TIFF?$`, 'i').test(one));
    if (file === undefined) continue;
    const header = await openRaster(file);
    bands.push(qualityBand(name, header, 0, measurePixelSize(header)));
  }
  return bands;
}

/** Cloud and thick cirrus, shadow, snow; land and water without these are clear. */
const MASK_CODES = {
  cloud: flagCode(Mask.cloud),
  cloudShadow: flagCode(Mask.shadow),
  // 1 thin, 2 medium, 3 thick.
  cirrus: (value: number) => (value === 3 ? Mask.cloud : Mask.notAssessed),
  snow: flagCode(Mask.snow),
  // 1 land, 2 water, 3 background.
  classes: (value: number) => (value === 1 || value === 2 ? Mask.clear : Mask.notAssessed),
};
