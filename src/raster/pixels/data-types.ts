/** Typed arrays of pixels: their types, sizes and nodata values. */
import type { DataType, PixelArray, StoredType } from '../raster.js';

interface PixelArrayConstructor {
  new (length: number): PixelArray;
  new (buffer: ArrayBufferLike, byteOffset?: number, length?: number): PixelArray;
  readonly BYTES_PER_ELEMENT: number;
}

const CONSTRUCTORS: Record<DataType, PixelArrayConstructor> = {
  uint8: Uint8Array,
  int8: Int8Array,
  uint16: Uint16Array,
  int16: Int16Array,
  uint32: Uint32Array,
  int32: Int32Array,
  float32: Float32Array,
  float64: Float64Array,
};

export const DATA_TYPES = Object.keys(CONSTRUCTORS) as DataType[];

export function bytesPerSample(dataType: DataType): number {
  return CONSTRUCTORS[dataType].BYTES_PER_ELEMENT;
}

/** Returns `length` zeros. */
export function allocatePixels(dataType: DataType, length: number): PixelArray {
  return new CONSTRUCTORS[dataType](length);
}

/** A typed view of bytes; `byteOffset` must be a multiple of the pixel size. */
export function viewPixels(
  dataType: DataType,
  buffer: ArrayBufferLike,
  byteOffset: number,
  length: number,
): PixelArray {
  return new CONSTRUCTORS[dataType](buffer, byteOffset, length);
}

/** The pixel type of a stored type: 64-bit integers become float64, which is exact up to 2^53. */
export function dataTypeOfStored(type: StoredType): DataType {
  return type === 'int64' || type === 'uint64' ? 'float64' : type;
}

export function bytesPerStored(type: StoredType): number {
  return bytesPerSample(dataTypeOfStored(type));
}

/** Stored numbers in this machine's byte order as `length` pixels; a view of the bytes if they need no conversion. */
export function readStoredNumbers(
  type: StoredType,
  buffer: ArrayBufferLike,
  byteOffset: number,
  length: number,
): PixelArray {
  if (type === 'int64') return Float64Array.from(new BigInt64Array(buffer, byteOffset, length), Number);
  if (type === 'uint64') return Float64Array.from(new BigUint64Array(buffer, byteOffset, length), Number);
  return viewPixels(type, buffer, byteOffset, length);
}

/** Swaps the byte order of numbers of `size` bytes, in place. */
export function swapBytes(bytes: Buffer, size: number): void {
  if (size === 2) bytes.swap16();
  else if (size === 4) bytes.swap32();
  else if (size === 8) bytes.swap64();
}

export function isFloat(dataType: DataType): boolean {
  return dataType === 'float32' || dataType === 'float64';
}

export function dataTypeOf(pixels: PixelArray): DataType {
  return pixels.constructor.name.replace('Array', '').toLowerCase() as DataType;
}

/**
 * The nodata value as stored in a pixel of this type. Undefined if the type cannot hold it (such as -9999 in uint16 or 1e300
 * in float32), so that `pixel === nodataAsType` is exact. NaN stays NaN, which is always nodata in a float raster.
 */
export function nodataAsType(dataType: DataType, nodata: number | undefined): number | undefined {
  if (nodata === undefined) return undefined;
  if (dataType === 'float32') {
    const stored = Math.fround(nodata);
    // A number that is too large for float32 would become infinity.
    return Number.isFinite(nodata) && !Number.isFinite(stored) ? undefined : stored;
  }
  if (dataType === 'float64') return nodata;
  const probe = allocatePixels(dataType, 1);
  probe[0] = nodata;
  return probe[0] === nodata ? nodata : undefined;
}

/** The value of pixels without data: the nodata value; without one, NaN for floats and 0 for integers. */
export function fillValueFor(dataType: DataType, nodata: number | undefined): number {
  return nodataAsType(dataType, nodata) ?? (isFloat(dataType) ? NaN : 0);
}

/**
 * The nodata value that the files of a group declare: NaN for floats without one, because their pixels without data are NaN.
 */
export function declaredNodata(dataType: DataType, nodata: number | null | undefined): number | undefined {
  return nodata ?? (isFloat(dataType) ? NaN : undefined);
}

/** The lowest number that pixels of a type can hold. */
export function minValue(dataType: DataType): number {
  if (isFloat(dataType)) return -Infinity;
  return dataType.startsWith('u') ? 0 : -(2 ** (bytesPerSample(dataType) * 8 - 1));
}

/** The number next to the nodata value. It replaces a computed pixel that happens to equal nodata. */
export function nodataReplacementFor(dataType: DataType, nodata: number): number {
  return nodata === minValue(dataType) ? nodata + 1 : nodata - 1;
}

/**
 * Parses a nodata value as GDAL writes and reads it. Undefined if there is none, or if pixels of this type cannot hold it: as in GDAL,
 * it then marks no pixel. Adds to `warnings` if the text is not a number.
 */
export function parseNodata(
  text: string | undefined,
  dataType: DataType,
  warnings: string[] = [],
): number | undefined {
  const word = text?.trim().toLowerCase();
  if (!word) return undefined;
  const value = parseGdalNumber(word);
  if (value === undefined)
    warnings.push(
      `its nodata value "${word.slice(0, 40)}" is not a number and is not used (--nodata sets one)`,
    );
  return nodataAsType(dataType, value) === undefined ? undefined : value;
}

function parseGdalNumber(word: string): number | undefined {
  if (/^[-+]?(nan|1\.#(ind|qnan|snan))/.test(word)) return NaN;
  const infinite = /^([-+]?)(inf|1\.#inf)/.exec(word);
  if (infinite) return infinite[1] === '-' ? -Infinity : Infinity;
  const value = Number(withDecimalPoint(word));
  return Number.isNaN(value) ? undefined : value;
}

/** As GDAL, takes a comma for the decimal point if it comes before any point. */
export const withDecimalPoint = (text: string) => (/^[^.]*,/.test(text) ? text.replace(',', '.') : text);

/** The number that a complete text states, with exponents and blanks around it; NaN for other texts. */
export function parseNumber(text: string): number {
  return /^\s*[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?\s*$/i.test(text) ? Number(text) : NaN;
}

/** The unsigned type of a size in bytes. Differences of signed and unsigned values wrap in the same way. */
export const UNSIGNED_BY_SIZE: Record<number, DataType> = { 1: 'uint8', 2: 'uint16', 4: 'uint32' };
