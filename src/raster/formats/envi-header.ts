/** Opens ENVI images (NV5, "ENVI Header Files"), which are two files: a text header, and raw numbers without any metadata. */
import { readdir, stat } from 'node:fs/promises';
import { basename, dirname, extname, join } from 'node:path';
import { crsFromEpsg, isInvertible } from '../crs/crs.js';
import { crsFromWkt } from '../crs/wkt.js';
import { corrupt, noCrs, notTiff, sizeMismatch, unknownCrs, unsupported } from '../errors.js';
import { type GeoreferencingOverride, georeferenceByCorners } from '../metadata.js';
import { bytesPerStored, dataTypeOfStored, parseNodata } from '../pixels/data-types.js';
import type { Affine, BandTags, Crs, EnviBlocks, RasterHeader, RasterShape, StoredType } from '../raster.js';
import { MAX_BLOCK_BYTES, requireSupportedSize, withFile } from '../source.js';
import { toNanometres, toNanometreWidths, type Wavelengths } from '../wavelengths.js';

const isHeaderName = (name: string) => extname(name).toLowerCase() === '.hdr';
const stemOf = (name: string) => basename(name, extname(name));

/**
 * The header beside an image: `cube.hdr` or `cube.bil.hdr` for `cube.bil`; undefined if there is none. Links are ignored: an
 * allowed file must not lead to one that is not allowed.
 */
export async function findHeader(image: string): Promise<string | undefined> {
  const name = basename(image);
  if (isHeaderName(name)) return undefined;
  const wanted = [`${name}.hdr`, `${stemOf(name)}.hdr`].map((one) => one.toLowerCase());
  const entries = await readdir(dirname(image), { withFileTypes: true });
  const names = entries.filter((entry) => entry.isFile()).map((entry) => entry.name);
  const found = wanted.flatMap((one) => names.find((other) => other.toLowerCase() === one) ?? []);
  return found[0] === undefined ? undefined : join(dirname(image), found[0]);
}

/**
 * Returns the image file of a header. The image of `cube.hdr` is named `cube`, or `cube` with any extension (`cube.bil`, `cube.dat`),
 * and has the size in `bytes` that the header describes. Throws TW_RASTER_SIZE_DIFFERS, with the sizes of the candidates, if no
 * file has this size, and TW_RASTER_UNSUPPORTED if several files have it.
 */
async function findImage(header: string, bytes: number, described: string): Promise<string> {
  const stem = stemOf(header).toLowerCase();
  const entries = await readdir(dirname(header));
  const names = entries.filter(
    (name) => !isHeaderName(name) && (name.toLowerCase() === stem || stemOf(name).toLowerCase() === stem),
  );
  const files: { path: string; name: string; size: number }[] = [];
  for (const name of names) {
    const path = join(dirname(header), name);
    const info = await stat(path);
    if (info.isFile()) files.push({ path, name, size: info.size });
  }
  const whole = files.filter(({ size }) => size === bytes);
  if (whole.length === 1) return whole[0]!.path;
  if (whole.length > 1)
    throw unsupported(
      header,
      `${whole.map(({ name }) => name).join(' and ')} both have the ${bytes} bytes that it describes; name the image instead of the header`,
    );
  const found = files
    .map(({ name, size }) => `${name} has ${describeSizeDifference(size, bytes)}`)
    .join(', ');
  throw sizeMismatch(header, described, bytes, found || `and no file ${stemOf(header)}.* is beside it`);
}

/** For example "9175041 bytes, 1 more: is header offset right?". */
function describeSizeDifference(found: number, expected: number): string {
  const more = found - expected;
  return more > 0
    ? `${found} bytes, ${more} more (is "header offset" right?)`
    : `${found} bytes, ${-more} less`;
}

/** Fields by their names in lower case, with single blanks. */
type EnviFields = ReadonlyMap<string, string>;

/** Limit of a header in bytes. The largest known ones, with 600 bands and all lists, have 60 kB. */
const MAX_HEADER_BYTES = 2 ** 22;

/** True if bytes are the start of an ENVI header. Editors put a byte order mark before it. */
function isEnviHeader(start: Uint8Array): boolean {
  return /^(\xef\xbb\xbf)?ENVI\s/.test(Buffer.from(start.subarray(0, 8)).toString('latin1'));
}

/**
 * Parses a header: lines of `key = value`, where a value in braces may span several lines. Lines that start with `;` are comments. If a
 * field occurs twice, the last one counts. Throws TW_RASTER_CORRUPT for an unclosed brace.
 */
function parseEnviHeader(text: string, path: string): EnviFields {
  const fields = new Map<string, string>();
  const lines = text.split(/\r\n|[\r\n]/).filter((line) => !line.trimStart().startsWith(';'));
  for (let i = 1; i < lines.length; i++) {
    const line = lines[i]!;
    const equals = line.indexOf('=');
    if (equals < 0) continue;
    const name = line.slice(0, equals).trim().toLowerCase().replace(/\s+/g, ' ');
    const parts = [line.slice(equals + 1).trim()];
    if (parts[0]!.startsWith('{')) {
      while (!parts.at(-1)!.includes('}')) {
        if (++i === lines.length) throw corrupt(path, `the braces of "${name}" are not closed`);
        parts.push(lines[i]!);
      }
      fields.set(name, parts.join('\n').slice(1).replace(/\}.*$/s, '').trim());
    } else fields.set(name, parts[0]!);
  }
  return fields;
}

/** The items of a list; undefined if the field is missing. */
export function listField(fields: EnviFields, name: string): string[] | undefined {
  const text = fields.get(name);
  if (text === undefined || text === '') return undefined;
  return text.split(',').map((item) => item.trim());
}

/**
 * The numbers of a list of `count`; undefined if the field is missing. Some writers use square brackets, with blanks between
 * the items. Throws TW_RASTER_CORRUPT for another count, and for items that are not numbers.
 */
function numberListField(
  fields: EnviFields,
  name: string,
  count: number,
  path: string,
): number[] | undefined {
  const text = fields
    .get(name)
    ?.replace(/^\[|\]$/g, '')
    .trim();
  if (!text) return undefined;
  const items = text.split(/\s*,\s*|\s+/).filter((item) => item !== '');
  if (items.length !== count)
    throw corrupt(path, `"${name}" lists ${items.length} values, and there are ${count} bands`);
  return items.map((item) => {
    const value = Number(item);
    if (Number.isNaN(value) && !/^[-+]?nan$/i.test(item))
      throw corrupt(path, `"${name}" holds "${item.slice(0, 40)}", which is not a number`);
    return value;
  });
}

/** An integer of at least `least`. Throws TW_RASTER_CORRUPT if the field is missing or invalid. */
function integerField(
  fields: EnviFields,
  name: string,
  { least, otherwise }: { least: number; otherwise?: number },
  path: string,
): number {
  const text = fields.get(name);
  if (text === undefined || text === '') {
    if (otherwise !== undefined) return otherwise;
    throw corrupt(path, `its header has no "${name}"`);
  }
  const value = Number(text);
  if (!Number.isSafeInteger(value) || value < least)
    throw corrupt(
      path,
      `its header says ${name} = ${text.slice(0, 40)}, which is not an integer of at least ${least}`,
    );
  return value;
}

/** The georeferencing of an image. Throws TW_RASTER_NO_CRS, TW_RASTER_UNKNOWN_CRS and TW_RASTER_CORRUPT. */
function enviGeoreferencing(fields: EnviFields, path: string): { crs: Crs; transform: Affine } {
  const info = listField(fields, 'map info');
  if (!info) throw noCrs(path, 'its header has no "map info"');
  return { crs: crsOf(fields, info, path), transform: transformOf(info, path) };
}

/**
 * `map info` holds: projection, column and row of the tie point (the outer corner of the first pixel is 1, 1), its x and y,
 * width and height of a pixel, then parameters of the projection. `rotation` turns the image counterclockwise around the tie
 * point, degrees (as in GDAL; ENVI does not define it).
 */
function transformOf(info: string[], path: string): Affine {
  const [column, row, x, y, width, height] = info.slice(1, 7).map(Number) as [
    ...[number, number, number, number, number, number],
  ];
  if (![column, row, x, y, width, height].every(Number.isFinite))
    throw corrupt(
      path,
      `"map info" holds no six numbers after the projection: ${info.slice(0, 7).join(', ')}`,
    );
  const turn = (numberAfter(info, 'rotation') * Math.PI) / 180;
  const xx = Math.cos(turn) * width;
  const xy = Math.sin(turn) * width;
  const yx = Math.sin(turn) * height;
  const yy = -Math.cos(turn) * height;
  const originX = x - (column - 1) * xx - (row - 1) * xy;
  const originY = y - (column - 1) * yx - (row - 1) * yy;
  const transform = { originX, originY, xx, xy, yx, yy };
  if (!isInvertible(transform)) throw noCrs(path, 'its pixels have no extent');
  return transform;
}

/** The number of an item `name=number`; 0 if there is none. */
function numberAfter(info: string[], name: string): number {
  const item = info.find((one) => one.toLowerCase().startsWith(`${name}=`));
  const value = Number(item?.slice(name.length + 1));
  return Number.isFinite(value) ? value : 0;
}

function crsOf(fields: EnviFields, info: string[], path: string): Crs {
  const wkt = fields.get('coordinate system string');
  const epsg = epsgOf(info);
  if (epsg !== undefined) return crsFromEpsg(epsg);
  if (wkt) return crsFromWkt(wkt, path);
  if (/^arbitrary/i.test(info[0]!)) throw noCrs(path, 'its "map info" has the projection Arbitrary');
  throw unknownCrs(`${info[0]} on ${info.slice(7, 10).join(', ') || 'no datum'} of ${path}`);
}

/** UTM, and longitudes and latitudes on WGS 84, need no WKT. */
function epsgOf(info: string[]): number | undefined {
  const [projection] = info;
  const isWgs84 = (datum: string | undefined) => /^wgs[-_ ]?(19)?84$/i.test(datum ?? '');
  if (/^geographic/i.test(projection!) && isWgs84(info[7])) return 4326;
  const zone = Number(info[7]);
  if (!/^utm$/i.test(projection!) || !isWgs84(info[9]) || !(zone >= 1 && zone <= 60)) return undefined;
  return (/^s/i.test(info[8]!) ? 32700 : 32600) + zone;
}

const TYPES_BY_CODE: Record<number, StoredType> = {
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
const COMPLEX_TYPES = new Set([6, 9]);

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
  if (COMPLEX_TYPES.has(code)) throw unsupported(header, 'its pixels are complex numbers');
  const storedType = TYPES_BY_CODE[code];
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
