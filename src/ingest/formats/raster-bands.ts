/**
 * Describes the bands of a raster of an unknown product by options, a STAC Item beside it, and its own tags. Options also describe the
 * position of a raster, and the wavelengths of its bands.
 */
import {
  type BandTags,
  crsFromEpsg,
  effectiveNodata,
  type GeoreferencingOverride,
  isHyperspectral,
  isWavelength,
  MAX_WAVELENGTH_NM,
  Mask,
  MIN_WAVELENGTH_NM,
  nodataAsType,
  type RasterHeader,
  spectralTags,
  treatAlphaAsData,
} from '../../raster/index.js';
import { commonBandNames, type UngroupedBand } from '../bands.js';
import { badOption, badSidecar, missingBand } from '../errors.js';
import { measurePixelSize } from '../georeferencing.js';
import type { DescribeOptions, QualityBand, SourceGroup } from '../scene.js';
import { datetimeOption } from './acquisition-time.js';
import type { ItemAsset } from './stac-sidecar.js';

/** STAC eo 1.1.0 common names. A band with such a name also has it as its common name. */
const COMMON_NAMES = new Set(
  'coastal blue green red rededge rededge071 rededge075 rededge078 yellow pan nir nir08 nir09 cirrus swir16 swir22 lwir lwir11 lwir12'.split(
    ' ',
  ),
);

/** The name in lower case if it is a common name. */
export function asCommonName(name: string): string | undefined {
  const lower = name.toLowerCase();
  return COMMON_NAMES.has(lower) ? lower : undefined;
}

type BandOptions = Pick<DescribeOptions, 'bands' | 'nodata' | 'scale' | 'offset' | 'maskBand'>;

/**
 * Options take precedence over the Item, and the Item over the file's own tags. A band with a palette or classes holds codes,
 * which are never averaged. A file of one unnamed band uses `fallback`.
 */
export function describeBands(
  opened: RasterHeader,
  options: BandOptions,
  asset?: ItemAsset,
  fallback?: string,
): UngroupedBand[] {
  const { path, alpha } = opened;
  const flagged = bandNamesFromOption(path, opened, options);
  // An alpha band is not a measurement, unless the user names it as a band.
  const isData = alpha !== undefined && (flagged[alpha] !== undefined || alpha + 1 === options.maskBand);
  const header = isData ? treatAlphaAsData(opened) : opened;
  const resolution = measurePixelSize(header);
  const spectrum = isHyperspectral(header.bandTags);
  const common = spectrum ? commonBandNames(header.bandTags) : undefined;
  requireAllBands(header, asset);
  return header.bandTags.flatMap((tags, index): UngroupedBand | [] => {
    if (index === header.alpha) return [];
    const item = asset?.bands[index] ?? asset?.everyBand;
    const single = header.bands === 1 ? fallback : undefined;
    const own = spectrum ? nameOfSpectralBand(tags) : nameOfBand(tags);
    const name = (flagged[index] ?? item?.name ?? (own || single) ?? `b${index + 1}`).trim();
    const base = { name, header, index, resolution };
    if (index + 1 === options.maskBand) return { ...base, role: 'qa', nodata: null, scale: 1, offset: 0 };
    const nodataOfItem = nodataAsType(header.dataType, item?.nodata ?? undefined);
    const commonName = item?.commonName ?? common?.get(index) ?? name;
    const codes = header.palette || (item?.codes ?? false);
    return {
      ...base,
      commonName: asCommonName(commonName),
      role: 'data',
      ...((codes || spectrum) && { resampling: 'nearest' }),
      ...spectralTags(tags),
      nodata: options.nodata ?? nodataOfItem ?? effectiveNodata(header) ?? null,
      scale: options.scale ?? item?.scale ?? tags.scale ?? 1,
      offset: options.offset ?? item?.offset ?? tags.offset ?? 0,
    };
  });
}

/** Throws TW_INGEST_BAD_SIDECAR if an Item states the scales of some bands of a file, and not of the others. */
function requireAllBands({ path, bands, alpha }: RasterHeader, asset: ItemAsset | undefined): void {
  const listed = asset?.bands ?? [];
  const isScaled = listed.some(({ scale, offset }) => scale !== undefined || offset !== undefined);
  if (!isScaled || listed.length === bands || (alpha !== undefined && listed.length === bands - 1)) return;
  throw badSidecar(
    path,
    `it lists ${listed.length} bands with scales for assets.${asset?.key}, and the file has ${bands}`,
  );
}

/** The same limit as in requests that name bands. */
const MAX_BAND_NAME_LENGTH = 200;

/** Ignores long descriptions. */
function nameOfBand({ description = '' }: BandTags): string {
  return description.length > MAX_BAND_NAME_LENGTH ? '' : description;
}

/** Ignores descriptions such as "band 1 (418.24 Nanometers)", which repeat the number and the wavelength. */
function nameOfSpectralBand({ description }: BandTags): string | undefined {
  return description !== undefined && /^[\w.-]{1,64}$/.test(description) ? description : undefined;
}

/** Names of --bands by band index. */
function bandNamesFromOption(
  path: string,
  header: RasterHeader,
  options: BandOptions,
): (string | undefined)[] {
  const names: (string | undefined)[] = [];
  const requireBand = (flag: string, label: string, number: number) => {
    if (number >= 1 && number <= header.bands) return;
    throw missingBand(path, label, `The file has ${header.bands} bands; correct ${flag}.`);
  };
  for (const [name, number] of Object.entries(options.bands ?? {})) {
    requireBand('--bands', `${name}=${number}`, number);
    names[number - 1] = name;
  }
  const { maskBand } = options;
  if (maskBand !== undefined) requireBand('--mask-band', String(maskBand), maskBand);
  return names;
}

/** The lookup for --mask-band: 0 is clear, any other value is cloud. Empty without the option. */
export function maskBandLookup(
  header: RasterHeader,
  groups: SourceGroup[],
  { maskBand }: BandOptions,
): QualityBand[] {
  if (maskBand === undefined) return [];
  if (header.dataType !== 'uint8' && header.dataType !== 'uint16') {
    const expected = `a band of 8 or 16 bit codes, but ${header.path} holds ${header.dataType}`;
    throw badOption('--mask-band', String(maskBand), expected);
  }
  const group = groups.find((g) => g.role === 'qa');
  if (!group) throw new Error('the mask band has no group');
  const codes = new Uint8Array(header.dataType === 'uint8' ? 256 : 65536).fill(Mask.cloud);
  codes[0] = Mask.clear;
  return [{ group: group.name, band: 0, codes }];
}

const POSITION_FORMAT = 'EPSG:CODE,ULX,ULY,LRX,LRY, such as EPSG:32633,500000,5300000,503000,5297000';

/** The value of --position; undefined without the option. Throws TW_INGEST_BAD_OPTION and TW_RASTER_UNKNOWN_CRS. */
export function positionOption({ position }: DescribeOptions): GeoreferencingOverride | undefined {
  if (position === undefined) return undefined;
  const [system, ...rest] = position.split(',');
  const code = /^EPSG:(\d{4,6})$/i.exec(system!.trim())?.[1];
  const numbers = rest.map((text) => (text.trim() === '' ? NaN : Number(text)));
  const [left, top, right, bottom] = numbers as [number, number, number, number];
  if (code === undefined || numbers.length !== 4 || !numbers.every(Number.isFinite))
    throw badOption('--position', position, POSITION_FORMAT);
  if (left >= right || bottom >= top)
    throw badOption('--position', position, 'a lower right corner that is south-east of the upper left one');
  return { crs: crsFromEpsg(Number(code)), corners: [left, top, right, bottom] };
}

/** Refuses options that count bands, because something else names the bands. Throws TW_INGEST_BAD_OPTION. */
export function refuseBandFlags({ bands, maskBand }: DescribeOptions, reason: string): void {
  const expected = `the flag to be left out, because ${reason}`;
  const named = Object.entries(bands ?? {}).map(([name, number]) => `${name}=${number}`);
  if (bands) throw badOption('--bands', named.join(','), expected);
  if (maskBand !== undefined) throw badOption('--mask-band', String(maskBand), expected);
}

/** Checks options whose value can be wrong for every input. Throws TW_INGEST_BAD_OPTION and TW_RASTER_UNKNOWN_CRS. */
export function checkOptions(options: DescribeOptions): void {
  datetimeOption(options);
  positionOption(options);
}

/**
 * The header with the wavelengths of --wavelengths, nm: one for each band, or those of the first and the last band, between
 * which the others are evenly spaced. Unchanged without the option. Throws TW_INGEST_BAD_OPTION.
 */
export function withWavelengths(header: RasterHeader, { wavelengths }: DescribeOptions): RasterHeader {
  if (wavelengths === undefined) return header;
  const said = wavelengths.slice(0, 3).join(',') + (wavelengths.length > 3 ? ',...' : '');
  if (!wavelengths.every(isWavelength))
    throw badOption('--wavelengths', said, `nanometres from ${MIN_WAVELENGTH_NM} to ${MAX_WAVELENGTH_NM}`);
  if (wavelengths.every((nanometres) => nanometres === wavelengths[0]))
    throw badOption('--wavelengths', said, 'wavelengths that differ');
  const { bands } = header;
  const isEnds = wavelengths.length === 2 && bands > 1;
  if (wavelengths.length !== bands && !isEnds)
    throw badOption(
      '--wavelengths',
      `with ${wavelengths.length} values`,
      `${bands}, one for each band, or those of the first and the last band`,
    );
  const [first, last] = wavelengths as [number, number];
  const step = (last - first) / (bands - 1);
  const at = (band: number) => wavelengths[band] ?? NaN;
  const even = (band: number) => Number((first + band * step).toFixed(3));
  const wavelengthOf = wavelengths.length === bands ? at : even;
  return {
    ...header,
    bandTags: header.bandTags.map((tags, band) => ({ ...tags, wavelength: wavelengthOf(band) })),
  };
}
