/** Reads the header of an ENVI image (NV5, "ENVI Header Files"). */
import { stat } from 'node:fs/promises';
import { corrupt, notTiff, sizeMismatch, unsupported } from '../errors.js';
import {
  type GeoreferencingOverride,
  georeferenceByCorners,
  MAX_BLOCK_BYTES,
  requireSupportedSize,
  withFile,
} from '../file-access/index.js';
import { toNanometres, toNanometreWidths, type Wavelengths } from '../metadata/index.js';
import { bytesPerStored, dataTypeOfStored, parseNodata } from '../pixels/index.js';
import type { BandTags, EnviBlocks, RasterHeader, RasterShape, StoredType } from '../raster-types.js';
import { describeSizeDifference, findHeader, findImage } from './envi-files.js';
import { enviGeoreferencing } from './envi-georeferencing.js';
import {
  type EnviFields,
  integerField,
  isEnviHeader,
  listField,
  MAX_HEADER_BYTES,
  numberListField,
  parseEnviHeader,
} from './envi-header-fields.js';

const TYPES: Record<number, StoredType> = {
  1: 'uint8',
  2: 'int16',
  3: 'int32',
  4: 'float32',
  5: 'float64',
  12: 'uint16',
  13: 'uint32',
  14: 'int64',
  15: 'uint64',
};
const COMPLEX = new Set([6, 9]);

/**
 * Opens an image by the path of its header, or by its own if the header lies beside it. `position` replaces the georeferencing
 * of the header. Throws TW_RASTER_UNREADABLE, _NOT_TIFF, _SIZE_DIFFERS, _CORRUPT, _UNSUPPORTED, _NO_CRS and _UNKNOWN_CRS.
 */
export async function openEnvi(
  header: string,
  { image, position }: { image?: string; position?: GeoreferencingOverride | undefined } = {},
): Promise<RasterHeader> {
  const fields = await readFields(header);
  const type = fields.get('file type') ?? '';
  if (/spectral library/i.test(type))
    throw notTiff(
      header,
      'it is a spectral library, and has no pixels',
      'Name it as a library of an analysis.',
    );
  if (/meta|classification.*virtual/i.test(type)) throw unsupported(header, `its file type is ${type}`);
  const numbers = await openEnviNumbers(fields, header, image);
  const warnings: string[] = [];
  return {
    ...numbers,
    ...(position ? georeferenceByCorners(position, numbers) : enviGeoreferencing(fields, header)),
    isDescribedOutside: true,
    nodata: parseNodata(fields.get('data ignore value'), numbers.dataType),
    palette: /classification/i.test(type),
    bandTags: bandTagsOf(fields, numbers.bands, header, warnings),
    metadata: metadataOf(fields),
    warnings,
  };
}

/** The raw image that a header describes, and the file beside it that holds it. */
export type EnviRaster = RasterShape & { blocks: EnviBlocks };

/** Throws TW_RASTER_SIZE_DIFFERS, _CORRUPT and _UNSUPPORTED. */
export async function openEnviNumbers(
  fields: EnviFields,
  header: string,
  image?: string,
): Promise<EnviRaster> {
  const [width, height, bands] = ['samples', 'lines', 'bands'].map((name) =>
    integerField(fields, name, { least: 1 }, header),
  ) as [number, number, number];
  requireSupportedSize(header, width, height, bands);
  const blocks = blockLayoutFor(fields, width, bands, header);
  const size = bytesPerStored(blocks.storedType);
  const bytes = blocks.headerOffset + width * height * bands * size;
  const described = `${width} samples x ${height} lines x ${bands} bands of ${blocks.storedType}${blocks.headerOffset > 0 ? ` after ${blocks.headerOffset} bytes` : ''}`;
  const path = image ?? (await findImage(header, bytes, described));
  const fileBytes = (await stat(path)).size;
  if (fileBytes !== bytes)
    throw sizeMismatch(path, described, bytes, `it has ${describeSizeDifference(fileBytes, bytes)}`);
  return { path, fileBytes, width, height, bands, dataType: dataTypeOfStored(blocks.storedType), blocks };
}

/** `openEnvi` for the path of an image; undefined if no ENVI header lies beside it. */
export async function openEnviImage(
  image: string,
  position?: GeoreferencingOverride,
): Promise<RasterHeader | undefined> {
  const header = await findHeader(image);
  return header === undefined ? undefined : openEnvi(header, { image, position });
}

/**
 * The other file of an ENVI image: the image of a header, or the header beside an image; undefined if there is none. Throws
 * the errors of `openEnvi`, except those of its georeferencing.
 */
export async function otherEnviFile(path: string, isHeader: boolean): Promise<string | undefined> {
  return isHeader ? (await openEnviNumbers(await readFields(path), path)).path : findHeader(path);
}

/** Throws TW_RASTER_UNREADABLE, _NOT_TIFF, _CORRUPT and _UNSUPPORTED. */
export async function readFields(header: string): Promise<EnviFields> {
  const bytes = await withFile(header, async ({ size, handle }) => {
    if (size > MAX_HEADER_BYTES) throw unsupported(header, `a header of ${size} bytes is too large`);
    return handle.readFile();
  });
  if (!isEnviHeader(bytes)) throw notTiff(header, 'its first line is not "ENVI"', 'Write the header again.');
  return parseEnviHeader(bytes.toString(), header);
}

function blockLayoutFor(fields: EnviFields, width: number, bands: number, header: string): EnviBlocks {
  const code = integerField(fields, 'data type', { least: 1 }, header);
  if (COMPLEX.has(code)) throw unsupported(header, 'its pixels are complex numbers');
  const storedType = TYPES[code];
  if (!storedType) throw corrupt(header, `its data type ${code} is not known`);
  const interleave = (fields.get('interleave') ?? '').toLowerCase();
  if (interleave !== 'bsq' && interleave !== 'bil' && interleave !== 'bip')
    throw corrupt(header, `its interleave is "${interleave.slice(0, 20)}" and not bsq, bil or bip`);
  if (width * bands * bytesPerStored(storedType) > MAX_BLOCK_BYTES)
    throw unsupported(header, `one of its rows has more than 1 GiB`);
  if (fields.get('file compression') === '1') throw unsupported(header, 'its image is compressed by gzip');
  return {
    reader: 'envi',
    width,
    height: 1,
    interleave,
    headerOffset: integerField(fields, 'header offset', { least: 0, otherwise: 0 }, header),
    storedType,
    littleEndian: isLittleEndian(fields, header),
  };
}

/** Headers without a byte order come from little-endian machines. */
function isLittleEndian(fields: EnviFields, header: string): boolean {
  const order = integerField(fields, 'byte order', { least: 0, otherwise: 0 }, header);
  if (order > 1) throw corrupt(header, `its byte order is ${order} and not 0 or 1`);
  return order === 0;
}

/** The factor from stored values to reflectance; undefined if the header has none. Throws TW_RASTER_CORRUPT. */
export function reflectanceScale(fields: EnviFields, header: string): number | undefined {
  const text = fields.get('reflectance scale factor');
  if (!text) return undefined;
  const scale = 1 / Number(text);
  if (!(scale > 0 && Number.isFinite(scale)))
    throw corrupt(
      header,
      `its reflectance scale factor is "${text.slice(0, 40)}" and not a finite number above 0`,
    );
  return scale;
}

/** Names that writers use for the same list; that of the standard is first. */
const WAVELENGTH_KEYS = ['wavelength', 'wavelengths'];
const WAVELENGTH_UNIT_KEYS = ['wavelength units', 'wavelength_units', 'wavelength unit', 'wavelength_unts'];

/** Wavelengths of `count` bands; undefined if the header has none. */
export function readWavelengths(fields: EnviFields, count: number, header: string): Wavelengths | undefined {
  const first = <T>(names: string[], find: (name: string) => T | undefined) =>
    names.map(find).find((value) => value !== undefined);
  const listed = first(WAVELENGTH_KEYS, (name) => numberListField(fields, name, count, header));
  const unit = first(WAVELENGTH_UNIT_KEYS, (name) => fields.get(name));
  return listed ? toNanometres(listed, unit) : wavelengthsInNames(listField(fields, 'band names'), count);
}

/** Reads wavelengths from band names such as "418.24 Nanometers". GDAL drops the wavelengths when it cuts an ENVI file. */
function wavelengthsInNames(names: readonly string[] | undefined, count: number): Wavelengths | undefined {
  const found = (names ?? []).flatMap((name) => {
    const [, value, unit] = /^(\d+(?:\.\d+)?)\s*([a-zµμ]+)$/i.exec(name) ?? [];
    return value !== undefined && NANOMETRES_OR_MICROMETRES.test(unit!)
      ? [{ value: Number(value), unit }]
      : [];
  });
  const units = new Set(found.map(({ unit }) => unit));
  if (found.length !== count || units.size !== 1) return undefined;
  return toNanometres(
    found.map(({ value }) => value),
    [...units][0],
  );
}

const NANOMETRES_OR_MICROMETRES = /^(nm|nanomet(er|re)s?|[uµμ]m|micromet(er|re)s?|microns?)$/i;

function bandTagsOf(fields: EnviFields, bands: number, header: string, warnings: string[]): BandTags[] {
  const numbers = (name: string) => numberListField(fields, name, bands, header);
  const spectrum = readWavelengths(fields, bands, header);
  if (spectrum?.warning) warnings.push(spectrum.warning);
  if (!spectrum && WAVELENGTH_KEYS.some((name) => fields.get(name)))
    warnings.push('the values of "wavelength" are no wavelengths, so the bands have none');
  const widths = spectrum && toNanometreWidths(numbers('fwhm') ?? [], spectrum, warnings);
  const good = numbers('bbl');
  const gains = numbers('data gain values') ?? numbers('data reflectance gain values');
  const offsets = numbers('data offset values') ?? numbers('data reflectance offset values');
  const scale = reflectanceScale(fields, header);
  const names = listField(fields, 'band names');
  return Array.from({ length: bands }, (_, band): BandTags => {
    const ownScale = gains?.[band] ?? scale;
    const offset = offsets?.[band];
    const description = names?.[band];
    return {
      ...(description && { description }),
      ...(ownScale !== undefined && { scale: ownScale }),
      ...(offset !== undefined && { offset }),
      ...(spectrum && { wavelength: spectrum.nanometres[band]! }),
      ...(widths?.[band] !== undefined && { fwhm: widths[band] }),
      ...(good?.[band] === 0 && { good: false as const }),
    };
  });
}

/** Fields under the names that GeoTIFFs use. */
function metadataOf(fields: EnviFields): Record<string, string> {
  const time = fields.get('acquisition time');
  const sensor = fields.get('sensor type');
  return {
    ...(time && { ACQUISITION_DATETIME: time }),
    ...(sensor && !/^unknown$/i.test(sensor) && { PLATFORM: sensor }),
    // The names that tiles of classes use.
    ...Object.fromEntries(
      (listField(fields, 'class names') ?? []).map((name, code) => [`CLASS_${code}`, name]),
    ),
  };
}
