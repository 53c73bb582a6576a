/** The wire format of Protocol Buffers (https://protobuf.dev/programming-guides/encoding/), as far as ONNX needs it. */

const VARINT = 0;
const LENGTH = 2;
const FIXED32 = 5;

/** A whole number of a message, of 64 bits. */
export function encodeInteger(field: number, value: number | bigint): Buffer {
  return Buffer.concat([tag(field, VARINT), varint(BigInt(value))]);
}

export function encodeFloat(field: number, value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeFloatLE(value);
  return Buffer.concat([tag(field, FIXED32), bytes]);
}

export function encodeBytes(field: number, value: Uint8Array): Buffer {
  return Buffer.concat([tag(field, LENGTH), varint(BigInt(value.byteLength)), value]);
}

export function encodeText(field: number, value: string): Buffer {
  return encodeBytes(field, Buffer.from(value));
}

/** A message within another, of these fields. */
export function encodeMessage(field: number, fields: Buffer[]): Buffer {
  return encodeBytes(field, Buffer.concat(fields));
}

const tag = (field: number, type: number) => varint(BigInt((field << 3) | type));

/** Seven bits a byte, the lowest first; a negative number as 64 bits of its two's complement. */
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
