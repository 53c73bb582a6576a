/** Opens ENVI images (NV5, "ENVI Header Files"), which are two files: a text header, and raw numbers without any metadata. */
import { readdir, stat } from 'node:fs/promises';
import { basename, dirname, extname, join } from 'node:path';
import { createTransform, crsFromEpsg, isInvertible, metresPerUnit } from '../crs/crs.js';
import { crsFromWkt } from '../crs/wkt.js';
import { convertTo, corrupt, noCrs, notTiff, sizeMismatch, unknownCrs, unsupported } from '../errors.js';
import { type GeoreferencingOverride, georeferenceByCorners } from '../metadata.js';
import { bytesPerStored, dataTypeOfStored, parseNodata, parseNumber } from '../pixels/data-types.js';
import {
  type Affine,
  aliasTable,
  type BandTags,
  type Crs,
  type DataType,
  type EnviBlocks,
  type RasterHeader,
  type RasterShape,
  type StoredType,
} from '../raster.js';
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
      `${whole.map(({ name }) => name).join(' and ')} both have the ${bytes} bytes that it describes`,
      'Name the image instead of the header.',
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
 * Parses a header: lines of `key = value`, where a value in braces may span several lines. Lines that start with `;` are comments. As in
 * GDAL, keys are read in any case and with `_` for blanks. If a field occurs twice, the last one counts. Throws TW_RASTER_CORRUPT for an
 * unclosed brace.
 */
function parseEnviHeader(text: string, path: string): EnviFields {
  const fields = new Map<string, string>();
  const lines = text.split(/\r\n|[\r\n]/).filter((line) => !line.trimStart().startsWith(';'));
  for (let i = 1; i < lines.length; i++) {
    const line = lines[i]!;
    const equals = line.indexOf('=');
    if (equals < 0) continue;
    const name = line
      .slice(0, equals)
      .trim()
      .toLowerCase()
      .replace(/[\s_]+/g, ' ');
    const value = line.slice(equals + 1).trim();
    const end = value.startsWith('{') ? endOfBraces(lines, i) : i;
    if (end === undefined) throw corrupt(path, `the braces of "${name}" are not closed`);
    const whole = [value, ...lines.slice(i + 1, end + 1)].join('\n');
    fields.set(name, value.startsWith('{') ? whole.slice(1, whole.lastIndexOf('}')).trim() : value);
    i = end;
  }
  return fields;
}

/**
 * The line on which the braces that line `start` opens are closed. Names may contain braces, so these are counted; if their numbers differ,
 * the first line that ends with a brace counts.
 */
function endOfBraces(lines: readonly string[], start: number): number | undefined {
  const isClosing = (i: number) => lines[i]!.trimEnd().endsWith('}');
  let open = 0;
  for (let i = start; i < lines.length; i++) {
    for (const brace of lines[i]!.match(/[{}]/g) ?? []) open += brace === '{' ? 1 : -1;
    if (open > 0) continue;
    // A name with a brace may end the count too early: then the list goes on before the next field.
    const next = lines.findIndex((line, at) => at > i && line.includes('='));
    const after = lines
      .slice(i + 1, next < 0 ? undefined : next)
      .findLastIndex((_, at) => isClosing(i + 1 + at));
    return i + 1 + after;
  }
  const end = lines.findIndex((_, i) => i >= start && isClosing(i));
  return end < 0 ? undefined : end;
}

/** The items of a list; undefined if the field is missing. */
export function listField(fields: EnviFields, name: string): string[] | undefined {
  const text = fields.get(name);
  if (text === undefined || text === '') return undefined;
  return text.split(',').map((item) => item.trim());
}

/** A list of `count` names; undefined, with a warning, if it has another length, because a comma in a name then moves the others. */
export function namesField(
  fields: EnviFields,
  name: string,
  count: number,
  warnings: string[],
): string[] | undefined {
  const names = listField(fields, name);
  if (names === undefined || names.length === count) return names;
  warnings.push(`"${name}" is not used: it lists ${names.length} names for ${count}`);
  return undefined;
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

/** Fields that could also state a position. */
const OTHER_POSITIONS = ['geo points', 'rpc info', 'pixel size'];

/**
 * The georeferencing of an image. Adds to `warnings` how unclear fields are read. Throws TW_RASTER_NO_CRS, TW_RASTER_UNKNOWN_CRS,
 * TW_RASTER_UNSUPPORTED and TW_RASTER_CORRUPT.
 */
function enviGeoreferencing(
  fields: EnviFields,
  path: string,
  warnings: string[],
): { crs: Crs; transform: Affine } {
  const info = listField(fields, 'map info');
  if (!info) {
    const others = OTHER_POSITIONS.filter((name) => fields.get(name)).map((name) => `"${name}"`);
    throw noCrs(
      path,
      `its header has no "map info"${others.length > 0 ? ` (${others.join(' and ')} are not read)` : ''}`,
    );
  }
  for (const name of ['x start', 'y start'])
    if (!['0', '1'].includes(String(Number(fields.get(name) || 1))))
      warnings.push(
        `its ${name} is ${fields.get(name)}, which does not move it: "map info" counts from its first pixel`,
      );
  const unit = unitOf(info, path);
  const { crs, isNamed } = crsOf(fields, info, unit, path, warnings);
  const { transform, isSouthUp } = transformOf(info, path);
  const isTurned = Math.abs(transform.xy) > 1e-9 * Math.hypot(transform.xx, transform.xy);
  if (isTurned && info.slice(1, 3).some((place) => Number(place) !== 1))
    warnings.push(
      `its rotation turns it around the reference pixel ${info.slice(1, 3).join(', ')} of "map info"; GDAL turns it around its first pixel`,
    );
  if (isSouthUp)
    warnings.push(
      'its rotation of 180 degrees is read as rows from south to north, as GDAL writes and reads it',
    );
  const factor = factorTo(crs, unit, isNamed, path);
  const scaled = Object.entries(transform).map(([name, value]) => [name, value * factor]);
  return { crs, transform: Object.fromEntries(scaled) };
}

/**
 * `map info` holds: projection, column and row of the tie point (the outer corner of the first pixel is 1, 1), its x and y,
 * width and height of a pixel, then parameters of the projection. `rotation` turns the image counterclockwise around the tie
 * point, degrees (ENVI does not define it). For GDAL, a rotation of 180 degrees stands for rows from south to north.
 */
function transformOf(info: string[], path: string): { transform: Affine; isSouthUp: boolean } {
  const numbers = info.slice(1, 7).map(parseNumber);
  const [column, row, x, y, width, height] = numbers as [number, number, number, number, number, number];
  if (numbers.length < 6 || !numbers.every(Number.isFinite))
    throw corrupt(
      path,
      `"map info" holds no six numbers after the projection: ${info.slice(0, 7).join(', ')}`,
    );
  const degrees = parseNumber(itemAfter(info, 'rotation') ?? '0');
  if (Number.isNaN(degrees))
    throw corrupt(
      path,
      `the rotation in "map info" is "${itemAfter(info, 'rotation')}", which is not a number`,
    );
  const isSouthUp = Math.abs(degrees) === 180;
  if (isSouthUp && row !== 1)
    throw unsupported(
      path,
      `"map info" has a rotation of 180 degrees and the reference row ${row}, so it is not clear which way its rows run`,
      'Set the reference pixel to 1, 1 in the header, or its position with --position.',
    );
  const turn = (degrees * Math.PI) / 180;
  const xx = isSouthUp ? width : Math.cos(turn) * width;
  const xy = isSouthUp ? 0 : Math.sin(turn) * width;
  const yx = isSouthUp ? 0 : Math.sin(turn) * height;
  const yy = isSouthUp ? height : -Math.cos(turn) * height;
  const originX = x - (column - 1) * xx - (row - 1) * xy;
  const originY = y - (column - 1) * yx - (row - 1) * yy;
  const transform = { originX, originY, xx, xy, yx, yy };
  if (!isInvertible(transform)) throw noCrs(path, 'its pixels have no extent');
  return { transform, isSouthUp };
}

/** The text of an item `name=text`. */
function itemAfter(info: string[], name: string): string | undefined {
  const pattern = new RegExp(`^${name}\\s*=\\s*(.*)$`, 'is');
  return info.map((item) => pattern.exec(item)?.[1]).find((text) => text !== undefined);
}

interface MapUnit {
  name: string;
  /** Metres; undefined for units of angles. */
  metres?: number;
  degrees?: number;
}

const METRES_PER_UNIT: Record<string, number> = {
  ...aliasTable([
    [1, 'm meter meters metre metres'],
    [1000, 'km kilometer kilometers kilometre kilometres'],
    [0.3048, 'ft foot feet'],
    [0.9144, 'yd yard yards'],
    [1609.344, 'mi mile miles'],
  ]),
  'nautical miles': 1852,
  'us survey feet': 1200 / 3937,
};
const DEGREES_PER_UNIT = aliasTable([
  [1, 'deg degree degrees'],
  [1 / 60, 'minute minutes'],
  [1 / 3600, 'second seconds'],
  [180 / Math.PI, 'rad radian radians'],
]);

/** The unit of the numbers of `map info`; undefined if it is not stated. Throws TW_RASTER_UNSUPPORTED for other units. */
function unitOf(info: string[], path: string): MapUnit | undefined {
  const name = itemAfter(info, 'units')?.trim() ?? '';
  const key = name.toLowerCase().replace(/\s+/g, ' ');
  if (key === '' || key === 'unknown') return undefined;
  if (Object.hasOwn(METRES_PER_UNIT, key)) return { name, metres: METRES_PER_UNIT[key] };
  if (Object.hasOwn(DEGREES_PER_UNIT, key)) return { name, degrees: DEGREES_PER_UNIT[key] };
  throw unsupported(path, `the unit of "map info" is ${name.slice(0, 40)}`, CORRECT_MAP_INFO);
}

const CORRECT_MAP_INFO = 'Correct "map info" in its header, or set its position with --position.';

/** "Feet" stands for international and for US survey feet, which differ by 2 in a million. */
const UNIT_TOLERANCE = 1e-5;

/** From the numbers of `map info` to the unit of its system. A system by its name has metres, and one by its text a unit of its own. */
function factorTo(crs: Crs, unit: MapUnit | undefined, isNamed: boolean, path: string): number {
  if (!unit) return 1;
  const { name, degrees, metres } = unit;
  const factor = crs.geographic ? degrees : metres && metres / metresPerUnit(crs);
  if (factor === undefined)
    throw unsupported(path, `"map info" is in ${name}, and its coordinate system is not`, CORRECT_MAP_INFO);
  if (isNamed || crs.geographic) return factor;
  if (Math.abs(factor - 1) < UNIT_TOLERANCE) return 1;
  throw unsupported(
    path,
    `"map info" is in ${name}, and its "coordinate system string" in units of ${metresPerUnit(crs)} m`,
    CORRECT_MAP_INFO,
  );
}

/** Largest distance between positions by the name and by the text of one system. */
const MAX_DIFFERENCE_DEGREES = 1e-4;

/** The system, and whether it is known by its name in `map info` instead of by its text, which takes precedence as in GDAL. */
function crsOf(
  fields: EnviFields,
  info: string[],
  unit: MapUnit | undefined,
  path: string,
  warnings: string[],
): { crs: Crs; isNamed: boolean } {
  const wkt = fields.get('coordinate system string');
  const epsg = epsgOf(info);
  const named = epsg === undefined ? undefined : crsFromEpsg(epsg);
  if (!wkt) {
    if (named) return { crs: named, isNamed: true };
    if (/^arbitrary/i.test(info[0]!)) throw noCrs(path, 'its "map info" has the projection Arbitrary');
    throw unknownCrs(`${info[0]} on ${info.slice(7, 10).join(', ') || 'no datum'} of ${path}`);
  }
  try {
    const crs = crsFromWkt(wkt, path);
    if (!named) return { crs, isNamed: false };
    const [x, y] = info.slice(3, 5).map(parseNumber) as [number, number];
    const place = (system: Crs, factor: number) =>
      createTransform(system, 'EPSG:4326')(x * factor, y * factor);
    const [lon, lat] = place(crs, factorTo(crs, unit, false, path));
    const ownUnit = crs.geographic ? undefined : { name: 'its own unit', metres: metresPerUnit(crs) };
    const [otherLon, otherLat] = place(named, factorTo(named, unit ?? ownUnit, true, path));
    const isSame = Math.hypot(lon - otherLon, lat - otherLat) < MAX_DIFFERENCE_DEGREES;
    if (!isSame)
      warnings.push(`"coordinate system string" is used, and "map info" names another system (EPSG:${epsg})`);
    const isNamed = isSame && (crs.geographic || metresPerUnit(crs) === 1);
    return { crs: isNamed ? named : crs, isNamed };
  } catch (error) {
    if (!named || !unknownCrs.is(error)) throw error;
    warnings.push(`"coordinate system string" cannot be read, so EPSG:${epsg} of "map info" is used`);
    return { crs: named, isNamed: true };
  }
}

/** UTM, and longitudes and latitudes on WGS 84, need no WKT. */
function epsgOf(info: string[]): number | undefined {
  const [projection] = info;
  const isWgs84 = (datum: string | undefined) => /^wgs[-_ ]?(19)?84$/i.test(datum ?? '');
  if (/^geographic/i.test(projection!) && isWgs84(info[7])) return 4326;
  const zone = Number(info[7]);
  if (!/^utm$/i.test(projection!) || !isWgs84(info[9])) return undefined;
  if (!(Number.isInteger(zone) && zone >= 1 && zone <= 60)) return undefined;
  const [, south] = /^(?:n|north|(s|south))$/i.exec(info[8]!) ?? [undefined, null];
  return south === null ? undefined : (south ? 32700 : 32600) + zone;
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
  if (/meta|classification.*virtual/i.test(type))
    throw unsupported(header, `its file type is ${type}`, 'Save it as ENVI Standard with ENVI.');
  const numbers = await openEnviNumbers(fields, header, image);
  const warnings: string[] = [];
  return {
    ...numbers,
    ...(position ? georeferenceByCorners(position, numbers) : enviGeoreferencing(fields, header, warnings)),
    isDescribedOutside: true,
    nodata: nodataOf(fields, numbers.dataType, warnings),
    palette: /classification/i.test(type),
    bandTags: bandTagsOf(fields, numbers.bands, header, warnings),
    metadata: metadataOf(fields),
    warnings,
  };
}

/** `data ignore value`, which some writers list for each band. Adds to `warnings` if it cannot be used. */
function nodataOf(fields: EnviFields, dataType: DataType, warnings: string[]): number | undefined {
  const text = fields.get('data ignore value')?.replace(/[[\]]/g, '') ?? '';
  const values = [...new Set(text.split(/[\s,]+/).filter((item) => item !== ''))];
  const numbers = new Set(values.map((value) => parseNodata(value, 'float64')));
  if (numbers.size > 1 || numbers.has(undefined))
    warnings.push(
      `its data ignore value "${text.slice(0, 80)}" is not one number and is not used (--nodata sets one)`,
    );
  return numbers.size > 1 ? undefined : parseNodata(values[0], dataType);
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
    if (size > MAX_HEADER_BYTES)
      throw unsupported(
        header,
        `a header of ${size} bytes is too large`,
        'Remove lists that are not needed.',
      );
    return handle.readFile();
  });
  if (!isEnviHeader(bytes)) throw notTiff(header, 'its first line is not "ENVI"', 'Write the header again.');
  return parseEnviHeader(bytes.toString(), header);
}

function blockLayoutFor(fields: EnviFields, width: number, bands: number, header: string): EnviBlocks {
  const code = integerField(fields, 'data type', { least: 1 }, header);
  if (COMPLEX_TYPES.has(code))
    throw unsupported(
      header,
      'its pixels are complex numbers',
      `${convertTo(code === 9 ? 'Float64' : 'Float32').replace(' IN ', ' IMAGE ')} This keeps the real part.`,
    );
  const storedType = TYPES_BY_CODE[code];
  if (!storedType) throw corrupt(header, `its data type ${code} is not known`);
  const interleave = (fields.get('interleave') ?? '').toLowerCase();
  if (interleave !== 'bsq' && interleave !== 'bil' && interleave !== 'bip')
    throw corrupt(header, `its interleave is "${interleave.slice(0, 20)}" and not bsq, bil or bip`);
  if (width * bands * bytesPerStored(storedType) > MAX_BLOCK_BYTES)
    throw unsupported(header, `one of its rows has more than 1 GiB`, CONVERT_IMAGE);
  if (fields.get('file compression') === '1')
    throw unsupported(header, 'its image is compressed by gzip', CONVERT_IMAGE);
  for (const name of ['major frame offsets', 'minor frame offsets'])
    if (/[1-9]/.test(fields.get(name) ?? ''))
      throw unsupported(header, `its image has bytes between its pixels ("${name}")`, CONVERT_IMAGE);
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

/** GDAL opens the image, not the header. */
const CONVERT_IMAGE = 'Convert it with gdal_translate -of COG IMAGE OUT.tif.';

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
const WAVELENGTH_UNIT_KEYS = ['wavelength units', 'wavelength unit', 'wavelength unts'];

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

/** Fields without a standard that could state a scale. */
const UNREAD_SCALE =
  /^(?!reflectance scale factor$|data (reflectance )?(gain|offset) values$).*\b(scale|gains?|scaling|add offset)\b/;

function bandTagsOf(fields: EnviFields, bands: number, header: string, warnings: string[]): BandTags[] {
  const numbers = (name: string) => numberListField(fields, name, bands, header);
  const spectrum = readWavelengths(fields, bands, header);
  if (spectrum?.warning) warnings.push(spectrum.warning);
  if (!spectrum && WAVELENGTH_KEYS.some((name) => fields.get(name)))
    warnings.push('the values of "wavelength" are no wavelengths, so the bands have none');
  const widths = spectrum && toNanometreWidths(numbers('fwhm') ?? [], spectrum, warnings);
  const good = numbers('bbl');
  const gains = numbers('data gain values') ?? numbers('data reflectance gain values');
  if (gains && fields.get('reflectance scale factor'))
    warnings.push('its reflectance scale factor is not used, because it has gain values');
  const offsets = numbers('data offset values') ?? numbers('data reflectance offset values');
  const scale = reflectanceScale(fields, header);
  const unread = [...fields.keys()].filter((name) => UNREAD_SCALE.test(name));
  if (unread.length > 0)
    warnings.push(
      `${unread.map((name) => `"${name}"`).join(', ')} is not read (--scale and --offset set values)`,
    );
  const names = namesField(fields, 'band names', bands, warnings);
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
