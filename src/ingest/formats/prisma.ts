/**
 * PRISMA level 2D: surface reflectance on a UTM grid, in one HDF-EOS5 file with a cube for each detector (ASI, PRISMA Products
 * Specification Document 2.3). Cubes are stored by lines, bands and samples, with bands from long to short wavelengths. Levels
 * 1, 2B and 2C have no grid.
 */
import { basename } from 'node:path';
import {
  crsFromEpsg,
  type MultiDatasetFile,
  openHdf5Cube,
  type RasterHeader,
  readHdf5Points,
  readWindow,
} from '../../raster/index.js';
import { groupBands, type UngroupedBand, withCommonNames } from '../bands.js';
import { badMetadata, notRecognised } from '../errors.js';
import { nominalPixelSize } from '../georeferencing.js';
import type { InputProbe, ProductFormat, Scene } from '../scene.js';
import {
  type AcquisitionTime,
  compactTimestamp,
  datetimeOption,
  parseTime,
  timeRange,
} from './acquisition-time.js';
import { hdf5Subdatasets } from './probe.js';
import { ASI } from './providers.js';

const SWATH = /^\/HDFEOS\/SWATHS\/PRS_(L1|L2[BCD])_H[RC][CO]\//;
const FIELDS = '/HDFEOS/SWATHS/PRS_L2D_HCO/Data Fields';
const GEOLOCATION = '/HDFEOS/SWATHS/PRS_L2D_HCO/Geolocation Fields';
const NAME = /^(PRS_L2D_\w+?_\d{14}_\d{14})_\d{4}\.he5$/i;

/** Stored numbers cover the entire range of uint16, from the attribute L2Scale...Min to L2Scale...Max. */
const MAX_STORED_VALUE = 65_535;
/** The end of the scale stands for pixels without data: 0 is a reflectance, which is frequent in dark bands. */
const NODATA = MAX_STORED_VALUE;
/** Bits of *_PIXEL_L2_ERR_MATRIX: 1 invalid in level 1, 2 negative after the atmospheric correction, 4 saturated. */
const NO_DATA_BITS = 1 | 4;

export const prisma: ProductFormat = {
  name: 'PRISMA',

  async identify(candidate) {
    return (await productOf(candidate)) !== null;
  },

  async describe(candidate, options) {
    const { path } = candidate;
    const product = await productOf(candidate);
    if (!product) throw notRecognised(path, 'it is not a PRISMA product');
    if (product.level !== 'L2D')
      throw notRecognised(path, `PRISMA ${product.level} has no map grid; order the scene as level L2D`);
    const { container } = product;
    const { metadata } = container;
    await requireNorthUp(container);
    // One after the other, so that a damaged file has one error.
    const bands = [...(await bandsOf(path, metadata, 'Vnir')), ...(await bandsOf(path, metadata, 'Swir'))];
    const span = datetimeOption(options) ?? timeOf(path, metadata);
    return [
      {
        path,
        id: options.id ?? NAME.exec(basename(path))?.[1] ?? `PRS_L2D_${compactTimestamp(span.start)}`,
        collection: {
          id: options.collection ?? 'prisma-l2d',
          title: 'PRISMA L2D surface reflectance',
          license: 'proprietary',
          licenseUrl: 'https://prisma.asi.it/missionselect/docs/PRISMA%20License%20to%20Use.pdf',
          attribution: 'Original PRISMA product - © Italian Space Agency (ASI) [year]',
          providers: [ASI],
        },
        platform: options.platform ?? 'prisma',
        ...span,
        groups: groupBands(withCommonNames(bands)),
        quality: [],
        warnings: ['the product has no cloud mask, so cloud is not assessed'],
      },
    ] satisfies Scene[];
  },
};

async function productOf(candidate: InputProbe) {
  const container = await hdf5Subdatasets(candidate);
  const level = container?.subdatasets.map(({ name }) => SWATH.exec(name)?.[1]).find(Boolean);
  return container && level ? { container, level } : null;
}

// --- attributes ---------------------------------------------------------------------------------------------------

type Metadata = MultiDatasetFile['metadata'];

/** The numbers of an attribute. Throws TW_INGEST_BAD_METADATA if it has none. */
function numbersOf(path: string, metadata: Metadata, name: string): number[] {
  const text = metadata[name] ?? '';
  const numbers = text.split(/[\s,]+/).map(Number);
  if (text.trim() === '' || !numbers.every(Number.isFinite))
    throw badMetadata(path, `it has no numeric attribute ${name}`);
  return numbers;
}

const numberOf = (path: string, metadata: Metadata, name: string) => numbersOf(path, metadata, name)[0]!;

function timeOf(path: string, { Product_StartTime = '', Product_StopTime = '' }: Metadata): AcquisitionTime {
  const range = timeRange(parseTime(Product_StartTime), parseTime(Product_StopTime));
  if (!range) throw badMetadata(path, 'it has no attribute Product_StartTime with a time');
  return range;
}

// --- position -----------------------------------------------------------------------------------------------------

/** The corners are centres of pixels. */
function transformOf(path: string, metadata: Metadata, width: number, height: number) {
  const corner = (name: string) => numberOf(path, metadata, `Product_${name}`);
  const left = corner('ULcorner_easting');
  const top = corner('ULcorner_northing');
  const right = corner('LRcorner_easting');
  const bottom = corner('LRcorner_northing');
  const xx = (right - left) / (width - 1);
  const yy = (bottom - top) / (height - 1);
  if (!(xx > 0 && yy < 0))
    throw badMetadata(path, 'its corners (Product_ULcorner_..., Product_LRcorner_...) span no area');
  return { originX: left - xx / 2, originY: top - yy / 2, xx, xy: 0, yx: 0, yy };
}

/**
 * Other readers of these files disagree on the dimension that runs east. Latitudes, which must fall from line to line, decide
 * it. The middle of the grid lies in the swath; corners may hold 0. Throws TW_INGEST_BAD_METADATA.
 */
async function requireNorthUp({ path, subdatasets }: MultiDatasetFile): Promise<void> {
  const latitude = subdatasets.find(({ name }) => name === `${GEOLOCATION}/Latitude`);
  if (latitude?.shape.length !== 2) return;
  const [lines, samples] = latitude.shape as [number, number];
  const places = [
    [0.25, 0.5],
    [0.75, 0.5],
    [0.5, 0.25],
    [0.5, 0.75],
  ].map(([down, across]): [number, number] => [Math.floor(down! * lines), Math.floor(across! * samples)]);
  const [north, south, west, east] = await readHdf5Points(path, latitude.name, places);
  if (!(north! - south! > Math.abs(west! - east!)))
    throw badMetadata(
      path,
      'its latitudes do not fall from line to line, so its cubes are not stored from north to south',
    );
}

// --- bands --------------------------------------------------------------------------------------------------------

/** Names in attributes. */
type Detector = 'Vnir' | 'Swir';

/**
 * The existing bands of a detector, by wavelength. Bands that the instrument does not deliver have the wavelength 0, and the
 * flag 0.
 */
async function bandsOf(path: string, metadata: Metadata, detector: Detector): Promise<UngroupedBand[]> {
  const list = (name: string) => numbersOf(path, metadata, name.replace('*', detector));
  const wavelengths = list('List_Cw_*');
  const widths = list('List_Fwhm_*');
  const header = await openCube(path, metadata, detector);
  if (wavelengths.length !== header.bands || widths.length !== header.bands)
    throw badMetadata(
      path,
      `List_Cw_${detector} and List_Fwhm_${detector} have ${wavelengths.length} and ${widths.length} bands, and the cube has ${header.bands} in its second dimension`,
    );
  const flags = metadata[`List_Cw_${detector}_Flags`] ? list('List_Cw_*_Flags') : [];
  const [[least], [most]] = [list('L2Scale*Min'), list('L2Scale*Max')];
  if (!(most! > least!)) throw badMetadata(path, `L2Scale${detector}Max is not above L2Scale${detector}Min`);
  const isBad = await failedBands(header);
  const resolution = nominalPixelSize(header);
  return [...wavelengths.keys()]
    .filter((index) => wavelengths[index]! > 0 && flags[index] !== 0)
    .sort((a, b) => wavelengths[a]! - wavelengths[b]!)
    .map((index, i) => ({
      name: `${detector.toLowerCase()}${i + 1}`,
      header,
      index,
      resolution,
      role: 'data',
      resampling: 'nearest',
      nodata: NODATA,
      scale: (most! - least!) / MAX_STORED_VALUE,
      offset: least!,
      detector,
      wavelength: Number(wavelengths[index]!.toPrecision(7)),
      ...(widths[index]! > 0 && { fwhm: Number(widths[index]!.toPrecision(7)) }),
      ...(isBad[index] && { good: false as const }),
    }));
}

function openCube(path: string, metadata: Metadata, detector: Detector): Promise<RasterHeader> {
  const name = detector.toUpperCase();
  return openHdf5Cube(path, {
    dataset: `${FIELDS}/${name}_Cube`,
    bandAxis: 1,
    errors: { dataset: `${FIELDS}/${name}_PIXEL_L2_ERR_MATRIX`, bits: NO_DATA_BITS },
    crs: crsFromEpsg(numberOf(path, metadata, 'Epsg_Code')),
    transform: (width, height) => transformOf(path, metadata, width, height),
    nodata: NODATA,
  });
}

/** Number of lines that are sampled to detect unusable bands, and of pixels in the middle of each. */
const SAMPLED_LINES = 16;
const SAMPLED_PIXELS = 1024;

/**
 * Bad bands, by their stored index; the product does not list them. In the absorption bands of water vapour the atmospheric
 * correction fails, and leaves 0 or an error. A band is bad if more than half of the seen pixels have one of these.
 */
async function failedBands(header: RasterHeader): Promise<boolean[]> {
  const { height, bands } = header;
  const width = Math.min(header.width, SAMPLED_PIXELS);
  const column = Math.floor((header.width - width) / 2);
  const failed = new Array<number>(bands).fill(0);
  let seen = 0;
  const step = Math.max(1, Math.floor(height / SAMPLED_LINES));
  for (let row = Math.floor(step / 2); row < height; row += step) {
    const window = { row, column, width, height: 1 };
    const line = await readWindow(header, [...failed.keys()], window);
    for (let i = 0; i < width; i++) {
      const hasFailed = line.map((band) => band[i] === 0 || band[i] === NODATA);
      if (hasFailed.every(Boolean)) continue;
      seen++;
      for (const [band, is] of hasFailed.entries()) failed[band]! += Number(is);
    }
  }
  return failed.map((count) => count > seen / 2);
}
