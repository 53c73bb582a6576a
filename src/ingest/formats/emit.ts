/**
 * EMIT level 2A: surface reflectance of a swath in netCDF-4, with a lookup table from pixels of a map to pixels of the swath
 * (LP DAAC, EMIT L2A Estimated Surface Reflectance and Uncertainty and Masks). The tiles hold exactly these pixels: the table
 * is already a nearest neighbour resampling. Cloud flags are in a separate file.
 */
import { readdir } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import {
  affineOfGdal,
  crsFromWkt,
  isInvertible,
  listSubdatasets,
  Mask,
  type MultiDatasetFile,
  openHdf5Cube,
  readHdf5Lists,
} from '../../raster/index.js';
import { groupBands, spectralCubeBands, type UngroupedBand } from '../bands.js';
import { badMetadata, notRecognised } from '../errors.js';
import {
  type DescribeOptions,
  type InputProbe,
  type ProductFormat,
  type Scene,
  slugify,
  stemOf,
} from '../scene.js';
import { type AcquisitionTime, datetimeOption, parseTime, timeRange } from './acquisition-time.js';
import { hdf5Subdatasets } from './probe.js';
import { LP_DAAC, NASA } from './providers.js';
import { buildQualityLookups, flagCode, qualityBand } from './quality.js';

const CUBE = '/reflectance';
const MASK = '/mask';
const LOOKUP = { columns: '/location/glt_x', rows: '/location/glt_y' };
const WAVELENGTHS = '/sensor_band_parameters/wavelengths';
const FWHM = '/sensor_band_parameters/fwhm';
const GOOD = '/sensor_band_parameters/good_wavelengths';
const FLAG_NAMES = '/sensor_band_parameters/mask_bands';

const RFL_NAME = /^(EMIT_L2A_)RFL(_.*\.nc)$/i;
const NODATA = -9999;
/** Codes of flags, which are 0 or 1. */
const NO_FLAG = 255;
/**
 * Metres, nominal for the instrument. Pixels of the table have the same size in degrees everywhere, so their size in metres
 * depends on the latitude.
 */
const PIXEL_SIZE = { x: 60, y: 60 };

export const emit: ProductFormat = {
  name: 'EMIT L2A',

  async identify(candidate) {
    return candidate.entries ? reflectanceFiles(candidate).length > 0 : isReflectance(candidate);
  },

  async describe(candidate, options) {
    const { path, entries } = candidate;
    if (!entries) return [await describeFile(await candidate.subdatasets(), options)];
    const files = reflectanceFiles(candidate);
    if (files.length === 0) throw notRecognised(path, 'it has no EMIT reflectance');
    const { id, ...others } = options;
    const each = files.length > 1 ? others : options;
    const scenes: Scene[] = [];
    for (const file of files) scenes.push(await describeFile(await listSubdatasets(file), each));
    return scenes;
  },
};

/** A granule is delivered as three files; a folder holds one granule or more. */
function reflectanceFiles({ path, entries }: InputProbe): string[] {
  return (entries ?? []).filter((name) => RFL_NAME.test(name)).map((name) => join(path, name));
}

async function isReflectance(candidate: InputProbe): Promise<boolean> {
  const container = await hdf5Subdatasets(candidate);
  const names = new Set(container?.subdatasets.map(({ name }) => name));
  return names.has(CUBE) && (names.has(LOOKUP.columns) || names.has(LOOKUP.rows));
}

async function describeFile(container: MultiDatasetFile, options: DescribeOptions): Promise<Scene> {
  const { path, metadata } = container;
  const warnings: string[] = [];
  const bands = await spectralBands(container, warnings);
  const flags = await flagBands(path, warnings);
  const groups = groupBands([...bands, ...flags]);
  return {
    path,
    id: options.id ?? slugify(stemOf(path)),
    collection: {
      id: options.collection ?? 'emit-l2a-rfl',
      title: 'EMIT L2A surface reflectance',
      // NASA ESDIS data use policy, as for MODIS.
      license: 'CC0-1.0',
      attribution: 'EMIT data courtesy of NASA/JPL-Caltech and LP DAAC, doi:10.5067/EMIT/EMITL2ARFL.001',
      providers: [NASA, LP_DAAC],
    },
    platform: options.platform ?? 'iss',
    ...(datetimeOption(options) ?? timeOf(path, metadata)),
    groups,
    quality: buildQualityLookups(groups, MASK_CODES),
    warnings,
  };
}

// --- what the file says -------------------------------------------------------------------------------------------

type Metadata = MultiDatasetFile['metadata'];

/** Times have zones such as +0000. */
function timeOf(path: string, metadata: Metadata): AcquisitionTime {
  const time = (text = '') => parseTime(text.replace(/([+-]\d\d)(\d\d)$/, '$1:$2'));
  const range = timeRange(time(metadata.time_coverage_start), time(metadata.time_coverage_end));
  if (!range) throw badMetadata(path, 'it has no attribute time_coverage_start with a time');
  return range;
}

/** Georeferencing of the table: the attributes geotransform, in GDAL's order, and spatial_ref. */
function positionOf(path: string, { geotransform = '', spatial_ref = '' }: Metadata) {
  const numbers = geotransform.split(',').map(Number);
  const transform = affineOfGdal(numbers);
  if (numbers.length !== 6 || !isInvertible(transform))
    throw badMetadata(path, `it has no attribute geotransform of six numbers`);
  if (spatial_ref === '') throw badMetadata(path, 'it has no attribute spatial_ref');
  return { crs: crsFromWkt(spatial_ref, path), transform: () => transform };
}

async function spectralBands(
  { path, metadata }: MultiDatasetFile,
  warnings: string[],
): Promise<UngroupedBand[]> {
  const header = await openHdf5Cube(path, {
    dataset: CUBE,
    bandAxis: 2,
    lookup: LOOKUP,
    fill: NODATA,
    nodata: NODATA,
    ...positionOf(path, metadata),
  });
  const lists = await readHdf5Lists(path, [WAVELENGTHS, FWHM, GOOD]);
  const list = (name: string) => {
    const values = lists.get(name) ?? [];
    if (values.length !== header.bands)
      throw badMetadata(path, `${name} has ${values.length} values, and the cube has ${header.bands} bands`);
    return values.map(Number);
  };
  const widths = list(FWHM);
  if (!lists.has(GOOD)) warnings.push(`${GOOD} is missing, so all bands count as good`);
  const good = lists.has(GOOD) ? list(GOOD) : [];
  const bands = list(WAVELENGTHS).map((wavelength, index) => {
    if (!(wavelength > 0)) throw badMetadata(path, `${WAVELENGTHS} has no wavelength for band ${index + 1}`);
    return {
      scale: 1,
      offset: 0,
      wavelength: Number(wavelength.toPrecision(7)),
      ...(widths[index]! > 0 && { fwhm: Number(widths[index]!.toPrecision(7)) }),
      ...(good[index] === 0 && { good: false as const }),
    };
  });
  return spectralCubeBands(header, PIXEL_SIZE, NODATA, bands);
}

// --- flags --------------------------------------------------------------------------------------------------------

/** By their names in the mask file; without names in the order of version 001. */
const FLAGS = {
  cloud: /^cloud/i,
  cirrus: /^cirrus/i,
  water: /^water/i,
  spacecraft: /^spacecraft/i,
  dilatedCloud: /^dilated/i,
};

async function flagBands(path: string, warnings: string[]): Promise<UngroupedBand[]> {
  const mask = await maskFileOf(path);
  if (!mask) {
    warnings.push('there is no EMIT_L2A_MASK file beside it, so cloud is not assessed');
    return [];
  }
  const { metadata } = await listSubdatasets(mask);
  const header = await openHdf5Cube(mask, {
    dataset: MASK,
    bandAxis: 2,
    lookup: LOOKUP,
    fill: NODATA,
    nodata: NO_FLAG,
    dataType: 'uint8',
    ...positionOf(mask, metadata),
  });
  const named = (await readHdf5Lists(mask, [FLAG_NAMES])).get(FLAG_NAMES);
  return Object.entries(FLAGS).map(([name, pattern], place) => {
    const index = named ? named.findIndex((flag) => pattern.test(String(flag))) : place;
    if (index < 0 || index >= header.bands) throw badMetadata(mask, `it has no ${name} flag among its bands`);
    return qualityBand(name, header, index, PIXEL_SIZE, NO_FLAG);
  });
}

/** The mask file of the same granule, by its name. */
async function maskFileOf(path: string): Promise<string | undefined> {
  const wanted = basename(path).replace(RFL_NAME, '$1MASK$2');
  if (wanted === basename(path)) return undefined;
  const folder = dirname(path);
  const found = (await readdir(folder)).find((name) => name.toLowerCase() === wanted.toLowerCase());
  return found && join(folder, found);
}

/**
 * Cloud, cirrus and pixels near clouds; parts of the space station hide the ground like shadow; everything else, including
 * water, is clear.
 */
const MASK_CODES = {
  cloud: flagCode(Mask.cloud),
  cirrus: flagCode(Mask.cloud),
  dilatedCloud: flagCode(Mask.cloud),
  spacecraft: flagCode(Mask.shadow),
  water: () => Mask.clear,
};
