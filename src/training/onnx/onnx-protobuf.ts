/** Wire format of Protocol Buffers (https://protobuf.dev/programming-guides/encoding/), the part that ONNX needs. */

const VARINT = 0;
const LENGTH = 2;
const FIXED32 = 5;

/** Encodes a 64-bit integer. */
export function encodeInteger(field: number, value: number | bigint): Buffer {
  return Buffer.concat([tag(field, VARINT), varint(BigInt(value))]);
}

export function encodeFloat(field: number, value: number): Buffer {
  const float = Buffer.alloc(4);
  float.writeFloatLE(value);
  return Buffer.concat([tag(field, FIXED32), float]);
}

export function encodeBytes(field: number, value: Uint8Array): Buffer {
  return Buffer.concat([tag(field, LENGTH), varint(BigInt(value.byteLength)), value]);
}

export function encodeText(field: number, value: string): Buffer {
  return encodeBytes(field, Buffer.from(value));
}

/** Encodes a nested message. */
export function encodeMessage(field: number, fields: Buffer[]): Buffer {
  return encodeBytes(field, Buffer.concat(fields));
}

const tag = (field: number, type: number) => varint(BigInt((field << 3) | type));

/** Seven bits per byte, the lowest first. Negative numbers are encoded as the 64 bits of their two's complement. */
function varint(value: bigint): Buffer {
  const groups: number[] = [];
  let rest = BigInt.asUintN(64, value);
  do {
    const more = rest > 127n ? 128 : 0;
    groups.push(Number(rest & 127n) | more);
    rest >>= 7n;
  } while (rest > 0n);
  return Buffer.from(groups);
}
