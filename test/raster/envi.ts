/** Writes ENVI images, as bytes that a second reader checks. */
import { writeFileSync } from 'node:fs';
import type { PixelArray } from '../../src/raster/index.js';

export const ENVI_TYPES = {
  uint8: 1,
  int16: 2,
  int32: 3,
  float32: 4,
  float64: 5,
  uint16: 12,
  uint32: 13,
  int64: 14,
  uint64: 15,
} as const;

export type EnviType = keyof typeof ENVI_TYPES;
export const INTERLEAVES = ['bsq', 'bil', 'bip'] as const;

export interface EnviCube {
  width: number;
  height: number;
  bands: ArrayLike<number>[];
  type: EnviType;
  interleave: (typeof INTERLEAVES)[number];
  bigEndian?: boolean;
  offset?: number;
  /** Further lines of the header. */
  lines?: string[];
}

export const MAP_INFO = 'map info = {UTM, 1, 1, 364095, 5809965, 30, 30, 33, North, WGS-84, units=Meters}';

export function headerOf({ width, height, bands, type, interleave, ...rest }: EnviCube): string {
  const { bigEndian = false, offset = 0, lines = [MAP_INFO] } = rest;
  return `${[
    'ENVI',
    `samples = ${width}`,
    `lines = ${height}`,
    `bands = ${bands.length}`,
    `header offset = ${offset}`,
    'file type = ENVI Standard',
    `data type = ${ENVI_TYPES[type]}`,
    `interleave = ${interleave}`,
    `byte order = ${bigEndian ? 1 : 0}`,
    ...lines,
  ].join('\n')}\n`;
}

const SIZES: Record<EnviType, number> = {
  uint8: 1,
  int16: 2,
  int32: 4,
  float32: 4,
  float64: 8,
  uint16: 2,
  uint32: 4,
  int64: 8,
  uint64: 8,
};

/** Writes `path` and `path` with `.hdr` in place of its extension. */
export function writeEnvi(path: string, cube: EnviCube): void {
  const { width, height, bands, type, interleave, bigEndian = false, offset = 0 } = cube;
  const size = SIZES[type];
  const bytes = new DataView(new ArrayBuffer(offset + width * height * bands.length * size));
  for (let row = 0, at = 0; row < height; row++)
    for (let column = 0; column < width; column++, at++)
      for (const [band, values] of bands.entries()) {
        const place = {
          bsq: (band * height + row) * width + column,
          bil: (row * bands.length + band) * width + column,
          bip: (row * width + column) * bands.length + band,
        }[interleave];
        put(bytes, offset + place * size, type, values[at]!, !bigEndian);
      }
  writeFileSync(path, new Uint8Array(bytes.buffer));
  writeFileSync(path.replace(/\.\w+$/, '.hdr'), headerOf(cube));
}

function put(bytes: DataView, at: number, type: EnviType, value: number, little: boolean): void {
  if (type === 'uint8') bytes.setUint8(at, value);
  else if (type === 'int16') bytes.setInt16(at, value, little);
  else if (type === 'uint16') bytes.setUint16(at, value, little);
  else if (type === 'int32') bytes.setInt32(at, value, little);
  else if (type === 'uint32') bytes.setUint32(at, value, little);
  else if (type === 'float32') bytes.setFloat32(at, value, little);
  else if (type === 'float64') bytes.setFloat64(at, value, little);
  else if (type === 'int64') bytes.setBigInt64(at, BigInt(value), little);
  else bytes.setBigUint64(at, BigInt(value), little);
}

/** What a reader gives: 64-bit integers as float64. */
export function asRead(values: ArrayLike<number>, like: PixelArray): PixelArray {
  return new (like.constructor as Float64ArrayConstructor)(values);
}
