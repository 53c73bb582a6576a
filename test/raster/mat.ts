/** Writes MATLAB 5 files, in forms that SciPy does not: other byte orders, and numbers in a smaller type than their class. */
import { deflateSync } from 'node:zlib';

export const MAT_TYPES = {
  int8: 1,
  uint8: 2,
  int16: 3,
  uint16: 4,
  int32: 5,
  uint32: 6,
  float32: 7,
  float64: 9,
  int64: 12,
  uint64: 13,
} as const;
export type MatType = keyof typeof MAT_TYPES;

const SIZES: Record<MatType, number> = {
  int8: 1,
  uint8: 1,
  int16: 2,
  uint16: 2,
  int32: 4,
  uint32: 4,
  float32: 4,
  float64: 8,
  int64: 8,
  uint64: 8,
};

export interface MatVariable {
  name: string;
  dimensions: number[];
  /** Column-major. */
  values: ArrayLike<number>;
  type: MatType;
  /** mxDOUBLE_CLASS by default. */
  kind?: number;
  compressed?: boolean;
}

export function matFile(variables: MatVariable[], bigEndian = false): Buffer {
  const header = Buffer.alloc(128, ' ');
  header.write('MATLAB 5.0 MAT-file, Platform: TEST');
  header.fill(0, 116, 124);
  header.write(bigEndian ? '\x01\x00MI' : '\x00\x01IM', 124, 'latin1');
  return Buffer.concat([
    header,
    ...variables.map((variable) => {
      const element = matrix(variable, bigEndian);
      if (!variable.compressed) return element;
      const stored = deflateSync(element);
      return Buffer.concat([words([15, stored.length], bigEndian), stored]);
    }),
  ]);
}

function matrix({ name, dimensions, values, type, kind = 6 }: MatVariable, bigEndian: boolean): Buffer {
  const numbers = Buffer.alloc(SIZES[type] * values.length);
  for (let i = 0; i < values.length; i++) put(numbers, i, type, values[i]!);
  if (bigEndian) swap(numbers, SIZES[type]);
  const parts = Buffer.concat([
    element(6, words([kind, 0], bigEndian), bigEndian),
    element(5, words(dimensions, bigEndian), bigEndian),
    element(1, Buffer.from(name), bigEndian),
    element(MAT_TYPES[type], numbers, bigEndian),
  ]);
  return Buffer.concat([words([14, parts.length], bigEndian), parts]);
}

/** Up to four bytes lie inside the tag. */
function element(type: number, data: Buffer, bigEndian: boolean): Buffer {
  if (data.length > 0 && data.length <= 4) {
    const small = Buffer.alloc(8);
    words([(data.length << 16) | type], bigEndian).copy(small);
    data.copy(small, 4);
    return small;
  }
  const padding = Buffer.alloc((8 - (data.length % 8)) % 8);
  return Buffer.concat([words([type, data.length], bigEndian), data, padding]);
}

function words(values: number[], bigEndian: boolean): Buffer {
  const bytes = Buffer.alloc(4 * values.length);
  for (const [i, value] of values.entries())
    if (bigEndian) bytes.writeUInt32BE(value >>> 0, 4 * i);
    else bytes.writeUInt32LE(value >>> 0, 4 * i);
  return bytes;
}

function put(bytes: Buffer, i: number, type: MatType, value: number): void {
  const at = i * SIZES[type];
  if (type === 'float32') bytes.writeFloatLE(value, at);
  else if (type === 'float64') bytes.writeDoubleLE(value, at);
  else if (type === 'int64') bytes.writeBigInt64LE(BigInt(value), at);
  else if (type === 'uint64') bytes.writeBigUInt64LE(BigInt(value), at);
  else if (type.startsWith('u')) bytes.writeUIntLE(value, at, SIZES[type]);
  else bytes.writeIntLE(value, at, SIZES[type]);
}

function swap(bytes: Buffer, size: number): void {
  if (size === 2) bytes.swap16();
  else if (size === 4) bytes.swap32();
  else if (size === 8) bytes.swap64();
}
