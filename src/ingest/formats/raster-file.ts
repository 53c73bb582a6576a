/**
 * Any single raster. Options, a STAC Item beside it, or its own tags describe its bands and its time. Invariant: every guess becomes a
 * warning of the scene.
 */

import { basename } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { TilewrightError } from '../../errors.js';
import { isHyperspectral, type MultiDatasetFile, openRaster, type RasterHeader } from '../../raster/index.js';
import { groupBands, type UngroupedBand } from '../bands.js';
import { badSidecar, collectionNotNamed, noDatetime, notRecognised, subdatasetNotKnown } from '../errors.js';
import {
  type DescribeOptions,
  type InputProbe,
  type ProductFormat,
  type Scene,
  type SourceGroup,
  slugify,
  stemOf,
} from '../scene.js';
import {
  type AcquisitionTime,
  compactTimestamp,
  datetimeOption,
  parseTime,
  timesInName,
} from './acquisition-time.js';
import { describeBands, maskBandLookup, positionOption, withWavelengths } from './raster-bands.js';
import { readItemBesideFile, type StacItemDescription } from './stac-sidecar.js';

/** Rasters of fewer bands are rarely spectra. */
const MIN_SPECTRUM_BANDS = 32;

/** Warns about rasters of many bands that lack metadata for an analysis of spectra. */
function spectrumWarnings(groups: readonly SourceGroup[], { scale }: DescribeOptions): string[] {
  const data = groups.filter(({ role }) => role === 'data');
  const warnings: string[] = [];
  for (const { bands } of data) {
    const isWhole = bands.every(({ header }) => !header.dataType.startsWith('float'));
    if (isHyperspectral(bands)) {
      if (scale === undefined && isWhole && bands.every((band) => band.scale === 1))
        warnings.push(
          'the spectra have no scale, so their numbers are not converted; if they are reflectance times 10,000, ingest with --scale 0.0001',
        );
    } else if (bands.length >= MIN_SPECTRUM_BANDS) {
      const lacking = bands.filter(({ wavelength }) => wavelength === undefined).length;
      warnings.push(
        `${lacking} of ${bands.length} bands have no wavelength, so they are not analysed as spectra; if they form a spectrum, give --wavelengths`,
      );
    }
  }
  return warnings;
}

export const rasterFile: ProductFormat = {
  name: 'raster file',

  async identify({ entries }) {
    return entries === null;
  },

  async describe(candidate, options) {
    const { path } = candidate;
    const header = withWavelengths(await openWith(candidate, options), options);
    const item = await readItemBesideFile(path);
    const name = basename(path);
    const assets = item?.assets ?? [];
    const asset = assets.find(({ file }) => file === name) ?? (assets.length === 1 ? assets[0] : undefined);
    const warnings = [...(header.warnings ?? []), ...(item?.warnings ?? [])];
    const span = timeOf(header, options, item, warnings);
    const bands = describeBands(header, options, asset, asset?.key);
    const lacks = [
      ...(warnings.includes(DATED_BY_NAME) ? [TIME_IN_NAME] : []),
      ...optionalFacts(bands, options),
    ];
    if ((options.collection ?? item?.collection) === undefined)
      throw collectionNotNamed(path, 'dates' in span ? [timeFact(span.dates), ...lacks] : lacks);
    if ('dates' in span) throw noDatetime(path, span.dates, lacks);
    const groups = groupBands(bands);
    if (await replacesPosition(candidate, options, header)) warnings.push(POSITION_REPLACED);
    if (bands.some((band) => band.header.alpha !== undefined)) warnings.push(isAlphaData(header));
    warnings.push(...spectrumWarnings(groups, options));
    // An Item with several files results in one scene for each of them.
    const itemId = item && (assets.length > 1 && asset ? `${item.id}_${asset.key}` : item.id);
    const scene: Scene = {
      ...describeRasterScene(path, options, item),
      id:
        options.id ?? (itemId ? slugify(itemId) : `${slugify(stemOf(name))}_${compactTimestamp(span.start)}`),
      platform: options.platform ?? item?.platform ?? header.metadata.PLATFORM ?? null,
      ...span,
      groups,
      quality: maskBandLookup(header, groups, options),
      warnings,
    };
    return [scene];
  },
};

const timeFact = (dates: string[]) =>
  `a time (--datetime 2024-06-01T10:30:00Z${dates.length > 0 ? `; the name holds ${dates.join(' and ')}` : ''})`;

const TIME_IN_NAME = 'a time (the date in its name counts; --name-pattern says what names hold)';

/** Facts that a file lacks, with the values that are assumed instead. */
function optionalFacts(bands: UngroupedBand[], { scale }: DescribeOptions): string[] {
  const data = bands.filter(({ role }) => role === 'data');
  const isUnnamed = data.length > 1 && data.every(({ name }, i) => name === `b${i + 1}`);
  const isUnscaled = ({ header, scale, offset, resampling }: UngroupedBand) =>
    /16|32/.test(header.dataType) &&
    !/float/.test(header.dataType) &&
    scale === 1 &&
    offset === 0 &&
    !resampling;
  return [
    ...(isUnnamed ? [`names of its bands (--bands NAME=1,NAME=2; else b1 to b${data.length})`] : []),
    ...(scale === undefined && data.some(isUnscaled)
      ? ['a scale (--scale 0.0001, if the numbers are 10,000 times the values; else 1)']
      : []),
  ];
}

const isAlphaData = ({ alpha = 0 }: RasterHeader) =>
  `pixels that are 0 in band ${alpha + 1} (alpha) hold no data (--bands NAME=${alpha + 1} makes it an ordinary band)`;

/** The header, with the options for layer and position. */
async function openWith(
  { path, fileType, header, subdatasets }: InputProbe,
  options: DescribeOptions,
): Promise<RasterHeader> {
  const { layer } = options;
  const position = positionOption(options);
  if (layer === undefined && (fileType === 'hdf4' || fileType === 'netcdf'))
    rejectSubdatasets(await subdatasets());
  return layer === undefined && !position ? header() : openRaster(path, layer, position);
}

const POSITION_REPLACED = 'the file has a position of its own; --position replaces it';

/** True if `--position` moves a raster that is georeferenced itself. */
async function replacesPosition(
  { path, header }: InputProbe,
  { layer, position }: DescribeOptions,
  { crs, transform }: RasterHeader,
): Promise<boolean> {
  if (position === undefined) return false;
  try {
    const own = layer === undefined ? await header() : await openRaster(path, layer);
    return own.crs.proj4 !== crs.proj4 || !isDeepStrictEqual(own.transform, transform);
  } catch (error) {
    // The raster opens with the option, so only its own georeferencing cannot be read.
    if (error instanceof TilewrightError) return false;
    throw error;
  }
}

/** Refuses a file of several layers: it does not define which layers belong together, and which time they have. */
function rejectSubdatasets({ path, subdatasets }: MultiDatasetFile): void {
  if (subdatasets.length === 1) return;
  if (subdatasets.length === 0) throw notRecognised(path, 'GDAL finds no raster in it');
  const names = subdatasets.slice(0, 50).map(({ name }) => name);
  const more = subdatasets.length > names.length ? ` and ${subdatasets.length - names.length} more` : '';
  throw subdatasetNotKnown(path, `${subdatasets.length} layers: ${names.join(', ')}${more}`);
}

/** Path, collection and position of the sun of a scene, from options and the Item. */
export function describeRasterScene(
  path: string,
  options: DescribeOptions,
  item: StacItemDescription | null,
): Pick<Scene, 'path' | 'collection' | 'sunAzimuth'> {
  const id = options.collection ?? item?.collection;
  if (!id) throw collectionNotNamed(path);
  if (item && id === item.collection && !/^[A-Za-z0-9][A-Za-z0-9.+-]{0,63}$/.test(id)) {
    throw badSidecar(
      item.path,
      `its collection ${id.slice(0, 80)} cannot name a collection; add --collection`,
    );
  }
  const { license = 'proprietary', licenseUrl, sunAzimuth } = item ?? {};
  const collection = { id, title: id, license, ...(licenseUrl !== undefined && { licenseUrl }) };
  return { path, collection, ...(sunAzimuth !== undefined && { sunAzimuth }) };
}

/** The same text for all files, so that it is logged once. */
const DATED_BY_NAME =
  'the file does not say when it was taken; its time is the date in its name (--datetime replaces it)';

const DATED_BY_TAG =
  'its time is the TIFF tag DateTime, which is mostly the time at which a program saved the file (--datetime replaces it)';

const isoDay = (time: number) => new Date(time).toISOString().slice(0, 10);

/**
 * The TIFF tag DateTime, "YYYY:MM:DD HH:MM:SS" without a zone, by convention in UTC. NaN if it is missing or has another form.
 */
const taggedTime = ({ dateTime = '' }: RasterHeader) =>
  parseTime(dateTime.replace(/^(\d{4}):(\d\d):(\d\d) /, '$1-$2-$3T'));

/**
 * Sources in order of precedence: options, the Item, the metadata of the file, a date in its name, the TIFF tag DateTime. Without a time,
 * returns the dates in its name. Throws TW_INGEST_BAD_OPTION.
 */
function timeOf(
  header: RasterHeader,
  options: DescribeOptions,
  item: StacItemDescription | null,
  warnings: string[],
): AcquisitionTime | { dates: string[] } {
  const said = datetimeOption(options) ?? item?.span;
  if (said) return said;
  const described = parseTime(header.metadata.ACQUISITION_DATETIME ?? '');
  if (!Number.isNaN(described)) return { start: described, end: described };
  const named = timesInName(basename(header.path));
  const tagged = taggedTime(header);
  if (named.length === 0 && !Number.isNaN(tagged)) {
    warnings.push(DATED_BY_TAG);
    return { start: tagged, end: tagged };
  }
  if (named.length !== 1) return { dates: named.map(isoDay) };
  warnings.push(DATED_BY_NAME);
  const [start] = named;
  return { start, end: start };
}
