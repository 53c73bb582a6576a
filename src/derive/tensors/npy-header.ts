/** The header of a NumPy file, version 1.0 of the format (NEP 1). The numbers follow it, last axis fastest. */
import type { DataType } from '../../raster/index.js';

const TYPES: Record<DataType, string> = {
  uint8: '|u1',
  int8: '|i1',
  uint16: '<u2',
  int16: '<i2',
  uint32: '<u4',
  int32: '<i4',
  float32: '<f4',
  float64: '<f8',
};

/** The numbers begin at a multiple of this. */
const ALIGNMENT = 64;

export function npyHead(dataType: DataType, shape: number[]): Buffer {
  const sizes = shape.length === 1 ? `${shape[0]},` : shape.join(', ');
  const text = `{'descr': '${TYPES[dataType]}', 'fortran_order': False, 'shape': (${sizes}), }`;
  const length = Math.ceil((10 + text.length + 1) / ALIGNMENT) * ALIGNMENT - 10;
  const head = Buffer.alloc(10, '\x93NUMPY\x01\x00', 'latin1');
  head.writeUInt16LE(length, 8);
  return Buffer.concat([head, Buffer.from(`${text.padEnd(length - 1)}\n`, 'latin1')]);
}
