/** Builds the graph of an ONNX model and encodes it as a file. The field numbers come from onnx.proto of ONNX 1.12. */

/** Wire types of Protocol Buffers (https://protobuf.dev/programming-guides/encoding/), those that ONNX needs. */
const VARINT = 0;
const LENGTH = 2;
const FIXED32 = 5;

/** Encodes a 64-bit integer. */
function encodeInteger(field: number, value: number | bigint): Buffer {
  return Buffer.concat([tag(field, VARINT), varint(BigInt(value))]);
}

function encodeFloat(field: number, value: number): Buffer {
  const float = Buffer.alloc(4);
  float.writeFloatLE(value);
  return Buffer.concat([tag(field, FIXED32), float]);
}

function encodeBytes(field: number, value: Uint8Array): Buffer {
  return Buffer.concat([tag(field, LENGTH), varint(BigInt(value.byteLength)), value]);
}

function encodeText(field: number, value: string): Buffer {
  return encodeBytes(field, Buffer.from(value));
}

/** Encodes a nested message. */
function encodeMessage(field: number, fields: Buffer[]): Buffer {
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

/** Version of the ONNX file format (intermediate representation) that operator set 17 requires. */
const IR_VERSION = 8;
const OPERATOR_SET = 17;
/** Element types of tensors. */
const FLOAT = 1;
const INT64 = 7;

/** The value of a node's attribute. Plain numbers are integers; `{ float }` is a floating-point number. */
export type Attribute = number | number[] | string | { float: number };

interface Node {
  op: string;
  inputs: string[];
  /** Name of the node and of its only output. */
  output: string;
  attributes: Record<string, Attribute>;
}

interface Tensor {
  name: string;
  shape: number[];
  values: Float32Array | BigInt64Array;
}

/** An input or output of the graph; its type is float32. In `shape`, a variable size is a name, or null if it has no name. */
export interface ValueInfo {
  name: string;
  shape: (number | string | null)[];
}

/**
 * A graph under construction. Invariants: each node comes after the nodes whose outputs it uses; no two nodes or tensors have the same
 * name.
 */
export class OnnxGraph {
  private readonly nodes: Node[] = [];
  private readonly tensors: Tensor[] = [];
  private readonly names = new Set<string>();

  /** Adds a node and returns the name of its output. This is `name`, with a number appended if the graph already uses `name`. */
  node(op: string, name: string, inputs: string[], attributes: Record<string, Attribute> = {}): string {
    const output = this.unused(name);
    this.nodes.push({ op, inputs, output, attributes });
    return output;
  }

  /**
   * Adds a constant tensor and returns its name. `values` are in row-major order. Operators expect sizes and positions as 64-bit integers.
   */
  tensor(name: string, shape: number[], values: Float32Array | BigInt64Array): string {
    const unused = this.unused(name);
    this.tensors.push({ name: unused, shape, values });
    return unused;
  }

  private unused(name: string): string {
    let unused = name;
    for (let i = 2; this.names.has(unused); i++) unused = `${name}${i}`;
    this.names.add(unused);
    return unused;
  }

  /**
   * Returns the content of the ONNX file. The same graph always results in the same bytes. `name` is the name of the graph, and `about`
   * is a description of the model for people.
   */
  encode(name: string, inputs: ValueInfo[], outputs: ValueInfo[], about: string): Buffer {
    const graph = [
      ...this.nodes.map(encodeNode),
      encodeText(2, name),
      ...this.tensors.map(encodeTensor),
      ...inputs.map((port) => encodeValueInfo(11, port)),
      ...outputs.map((port) => encodeValueInfo(12, port)),
    ];
    return Buffer.concat([
      encodeInteger(1, IR_VERSION),
      encodeText(2, 'tilewright'),
      encodeText(6, about),
      encodeMessage(7, graph),
      encodeMessage(8, [encodeText(1, ''), encodeInteger(2, OPERATOR_SET)]),
    ]);
  }
}

function encodeNode({ op, inputs, output, attributes }: Node): Buffer {
  return encodeMessage(1, [
    ...inputs.map((name) => encodeText(1, name)),
    encodeText(2, output),
    encodeText(3, output),
    encodeText(4, op),
    ...Object.entries(attributes).map(([name, value]) =>
      encodeMessage(5, [encodeText(1, name), ...encodeValue(value)]),
    ),
  ]);
}

/** Encodes the fields of an attribute: its value, followed by the type of the value. */
function encodeValue(value: Attribute): Buffer[] {
  if (typeof value === 'number') return [encodeInteger(3, value), encodeInteger(20, 2)];
  if (typeof value === 'string') return [encodeText(4, value), encodeInteger(20, 3)];
  if (Array.isArray(value)) return [...value.map((one) => encodeInteger(8, one)), encodeInteger(20, 7)];
  return [encodeFloat(2, value.float), encodeInteger(20, 1)];
}

function encodeTensor({ name, shape, values }: Tensor): Buffer {
  return encodeMessage(5, [
    ...shape.map((size) => encodeInteger(1, size)),
    encodeInteger(2, values instanceof Float32Array ? FLOAT : INT64),
    encodeText(8, name),
    encodeBytes(9, Buffer.from(values.buffer, values.byteOffset, values.byteLength)),
  ]);
}

function encodeValueInfo(field: number, { name, shape }: ValueInfo): Buffer {
  const sizes = shape.map((size) => {
    if (size === null) return encodeMessage(1, []);
    return encodeMessage(1, [typeof size === 'number' ? encodeInteger(1, size) : encodeText(2, size)]);
  });
  const type = encodeMessage(1, [encodeInteger(1, FLOAT), encodeMessage(2, sizes)]);
  return encodeMessage(field, [encodeText(1, name), encodeMessage(2, [type])]);
}
