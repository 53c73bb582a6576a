/**
 * EnMAP level 2A as delivered: a cube of surface reflectance, its metadata, and quality rasters (EnMAP HSI Level 1B / Level 1C
 * / Level 2A Product Specification, EN-PCV-ICD-2009-2). Wavelengths are in the metadata and not in the GeoTIFF.
 */
import { basename } from 'node:path';
import { Mask, openRaster, type RasterHeader, type SpectralTags } from '../../../raster/index.js';
import { groupBands, type UngroupedBand } from '../../band-groups.js';
import { badMetadata, missingBand, notRecognised } from '../../errors.js';
import { measurePixelSize } from '../../georeferencing/index.js';
import type { ProductFormat, QualityBand, Scene, SourceGroup } from '../../scene-description.js';
import {
  buildQualityLookup,
  commonBandNames,
  DLR,
  datetimeOption,
  elementsOf,
  readXml,
  slugify,
  type XmlElement,
} from '../shared/index.js';
import {
  findMetadataFile,
  findProductFiles,
  numberElement,
  requiredNumber,
  temporalCoverage,
} from './dlr-product.js';

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
        quality: maskOf(groups),
        reflectanceTest: false,
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
  const tags = listed.map((element): SpectralTags => {
    const fwhm = numberElement(element, 'FWHMOfBand');
    return {
      wavelength: requiredNumber(
        element,
        element.attributes['number'] ?? '?',
        'wavelengthCenterOfBand',
        metadata,
      ),
      ...(fwhm !== undefined && fwhm > 0 && { fwhm }),
      ...(!isDelivered(Number(element.attributes['number'])) && { good: false as const }),
    };
  });
  const names = commonBandNames(tags);
  const resolution = measurePixelSize(header);
  return listed.map((element, index) => ({
    name: `b${index + 1}`,
    ...(names.has(index) && { commonName: names.get(index)! }),
    header,
    index,
    resolution,
    role: 'data',
    resampling: 'nearest',
    nodata: header.nodata ?? NODATA,
    scale: numberElement(element, 'GainOfBand') ?? SCALE,
    offset: numberElement(element, 'OffsetOfBand') ?? 0,
    ...tags[index],
  }));
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
    const resolution = measurePixelSize(header);
    bands.push({ name, header, index: 0, resolution, role: 'qa', nodata: null, scale: 1, offset: 0 });
  }
  return bands;
}

const flag = (code: number) => (value: number) => (value === 1 ? code : Mask.notAssessed);

/** Cloud and thick cirrus, shadow, snow; land and water without these are clear. */
function maskOf(groups: SourceGroup[]): QualityBand[] {
  return [
    buildQualityLookup(groups, 'cloud', flag(Mask.cloud)),
    buildQualityLookup(groups, 'cloudShadow', flag(Mask.shadow)),
    // 1 thin, 2 medium, 3 thick.
    buildQualityLookup(groups, 'cirrus', (value) => (value === 3 ? Mask.cloud : Mask.notAssessed)),
    buildQualityLookup(groups, 'snow', flag(Mask.snow)),
    // 1 land, 2 water, 3 background.
    buildQualityLookup(groups, 'classes', (value) =>
      value === 1 || value === 2 ? Mask.clear : Mask.notAssessed,
    ),
  ].filter((band) => band !== null);
}
