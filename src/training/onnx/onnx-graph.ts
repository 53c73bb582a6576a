/** An ONNX model as data, and as the bytes of its file. Numbers of fields are those of onnx.proto of ONNX 1.12. */
import { bytes, float, integer, message, text } from './protobuf.js';

/** The format that came with operator set 17. */
const IR_VERSION = 8;
const OPERATOR_SET = 17;
const FLOAT = 1;
const INT64 = 7;

/** Whole numbers unless they say that they are none. */
export type Attribute = number | number[] | string | { float: number };

interface Node {
  op: string;
  inputs: string[];
  /** Also the name of the node. */
  output: string;
  attributes: Record<string, Attribute>;
}

interface Tensor {
  name: string;
  shape: number[];
  values: Float32Array | BigInt64Array;
}

/** What goes in or comes out: float32. A size that any value fits has a name, or null where nothing is known of it. */
export interface Port {
  name: string;
  shape: (number | string | null)[];
}

/** A graph as far as it is made. Invariant: a node comes after those whose results it takes, and each name is of one value. */
export class Graph {
  private readonly nodes: Node[] = [];
  private readonly tensors: Tensor[] = [];
  private readonly names = new Set<string>();

  /** Adds a node; `name` is that of its result, which is returned, with a number where it is taken. */
  node(op: string, name: string, inputs: string[], attributes: Record<string, Attribute> = {}): string {
    const output = this.unused(name);
    this.nodes.push({ op, inputs, output, attributes });
    return output;
  }

  /** Adds constant values in row-major order, of which 64-bit integers are for sizes and positions; returns their name. */
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

  /** The file, the same for the same graph. `about` tells people what the model is. */
  encode(name: string, inputs: Port[], outputs: Port[], about: string): Buffer {
    const graph = [
      ...this.nodes.map(encodeNode),
      text(2, name),
      ...this.tensors.map(encodeTensor),
      ...inputs.map((port) => encodePort(11, port)),
      ...outputs.map((port) => encodePort(12, port)),
    ];
    return Buffer.concat([
      integer(1, IR_VERSION),
      text(2, 'tilewright'),
      text(6, about),
      message(7, graph),
      message(8, [text(1, ''), integer(2, OPERATOR_SET)]),
    ]);
  }
}

function encodeNode({ op, inputs, output, attributes }: Node): Buffer {
  return message(1, [
    ...inputs.map((name) => text(1, name)),
    text(2, output),
    text(3, output),
    text(4, op),
    ...Object.entries(attributes).map(([name, value]) => message(5, [text(1, name), ...encodeValue(value)])),
  ]);
}

/** The value, then its type. */
function encodeValue(value: Attribute): Buffer[] {
  if (typeof value === 'number') return [integer(3, value), integer(20, 2)];
  if (typeof value === 'string') return [text(4, value), integer(20, 3)];
  if (Array.isArray(value)) return [...value.map((one) => integer(8, one)), integer(20, 7)];
  return [float(2, value.float), integer(20, 1)];
}

function encodeTensor({ name, shape, values }: Tensor): Buffer {
  return message(5, [
    ...shape.map((size) => integer(1, size)),
    integer(2, values instanceof Float32Array ? FLOAT : INT64),
    text(8, name),
    bytes(9, Buffer.from(values.buffer, values.byteOffset, values.byteLength)),
  ]);
}

function encodePort(field: number, { name, shape }: Port): Buffer {
  const sizes = shape.map((size) => {
    if (size === null) return message(1, []);
    return message(1, [typeof size === 'number' ? integer(1, size) : text(2, size)]);
  });
  const type = message(1, [integer(1, FLOAT), message(2, sizes)]);
  return message(field, [text(1, name), message(2, [type])]);
}
