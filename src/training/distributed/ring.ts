/** A ring of ranks: the two connections of a rank, with messages as frames with checksums, and collective operations. */
import type { Duplex } from 'node:stream';
import { crc32 } from 'node:zlib';
import {
  ERROR_DOCUMENT_SCHEMA,
  type ErrorDocument,
  fromErrorDocument,
  messageOf,
  TilewrightError,
  toErrorDocument,
} from '../../errors.js';
import { messageCheck } from '../../utils/json-schema.js';
import { nodeLost, trainingFailed } from '../errors.js';

/** Kind (1 byte), length of the content, CRC-32 of the content, and CRC-32 of these three; 4 bytes each, little-endian. */
const HEADER_BYTES = 13;
const LENGTH_OFFSET = 1;
const CHECKSUM_OFFSET = 5;
const HEADER_CHECKSUM_OFFSET = 9;
const CONTENT_KIND = 0;
/** The error with which a rank gives up, as JSON. */
const FAILURE_KIND = 1;

interface Frame {
  kind: number;
  content: Buffer;
}

export interface RankInfo {
  index: number;
  /** Names of all ranks, in their order. */
  members: string[];
}

/**
 * Invariant: once it has failed, all pending operations are rejected with the first failure, and both neighbours receive that failure and
 * forward it. After `shutdown` nothing fails any more.
 */
export class RingConnection implements ProcessGroup {
  readonly index: number;
  readonly size: number;
  sent = 0;
  received = 0;
  private readonly nextName: string;
  private readonly arrived: Buffer[] = [];
  private waiting: { resolve(content: Buffer): void; reject(error: unknown): void } | undefined;
  private failure: TilewrightError | undefined;
  private state: 'in' | 'leaving' | 'left' = 'in';

  constructor(
    { index, members }: RankInfo,
    private readonly previous: Duplex,
    private readonly next: Duplex,
  ) {
    this.index = index;
    this.size = members.length;
    // The readers report errors.
    for (const stream of [previous, next]) stream.on('error', () => undefined);
    void this.listen(previous, members.at(index - 1)!);
    this.nextName = members[(index + 1) % members.length];
    void this.listen(next, this.nextName);
  }

  send(bytes: Uint8Array): Promise<void> {
    if (this.failure) return Promise.reject(this.failure);
    this.sent += HEADER_BYTES + bytes.length;
    return new Promise((resolve, reject) => {
      this.next.write(frameOf(CONTENT_KIND, bytes), (error) => {
        if (!error) return resolve();
        this.fail(nodeLost.because(error, this.nextName, error.message));
        reject(this.failure);
      });
    });
  }

  receive(): Promise<Uint8Array> {
    const content = this.arrived.shift();
    if (content) return Promise.resolve(content);
    if (this.failure) return Promise.reject(this.failure);
    return new Promise((resolve, reject) => {
      this.waiting = { resolve, reject };
    });
  }

  /** Ends the connections in order: no rank leaves before its neighbours have received everything they need from it. */
  async shutdown(): Promise<void> {
    // The next rank leaves as soon as it has this message, and needs nothing more.
    this.state = 'leaving';
    await this.send(new Uint8Array());
    await this.receive();
    this.state = 'left';
    this.next.end();
    this.previous.end();
  }

  /** Gives up, and sends the error to the neighbours. */
  fail(error: TilewrightError): void {
    if (this.failure) return;
    this.failure = error;
    const frame = frameOf(FAILURE_KIND, Buffer.from(JSON.stringify(toErrorDocument(error))));
    for (const stream of [this.previous, this.next]) if (stream.writable) stream.end(frame);
    this.waiting?.reject(error);
  }

  private async listen(stream: Duplex, name: string): Promise<void> {
    try {
      for await (const { kind, content } of framesOf(stream)) {
        this.received += HEADER_BYTES + content.length;
        if (kind === FAILURE_KIND) throw failureOf(content);
        if (this.waiting) this.waiting.resolve(content);
        else this.arrived.push(content);
        this.waiting = undefined;
      }
      throw nodeLost(name, 'its connection has ended');
    } catch (error) {
      if (this.state === 'left' || (this.state === 'leaving' && stream === this.next)) return;
      this.fail(error instanceof TilewrightError ? error : nodeLost.because(error, name, messageOf(error)));
    } finally {
      // A stream only reports its end if it is read.
      stream.resume();
    }
  }
}

function frameOf(kind: number, content: Uint8Array): Buffer {
  const frame = Buffer.allocUnsafe(HEADER_BYTES + content.length);
  frame.writeUInt8(kind, 0);
  frame.writeUInt32LE(content.length, LENGTH_OFFSET);
  frame.writeUInt32LE(crc32(content), CHECKSUM_OFFSET);
  frame.writeUInt32LE(crc32(frame.subarray(0, HEADER_CHECKSUM_OFFSET)), HEADER_CHECKSUM_OFFSET);
  frame.set(content, HEADER_BYTES);
  return frame;
}

const checkError = messageCheck(ERROR_DOCUMENT_SCHEMA);

function failureOf(content: Buffer): TilewrightError {
  const error: unknown = JSON.parse(content.toString());
  return checkError(error) === undefined ? fromErrorDocument(error as ErrorDocument) : damaged();
}

const damaged = () => trainingFailed('a message of another node is damaged');

async function* framesOf(stream: Duplex): AsyncGenerator<Frame> {
  let pieces: Buffer[] = [];
  let bytes = 0;
  let needed = HEADER_BYTES;
  // The stream must stay open, so that the reader can send an error.
  for await (const piece of stream.iterator({ destroyOnReturn: false })) {
    pieces.push(piece as Buffer);
    bytes += (piece as Buffer).length;
    while (bytes >= needed) {
      const all = pieces.length === 1 ? pieces[0] : Buffer.concat(pieces);
      pieces = [all];
      // Otherwise the reader would wait for the bytes of a wrong length.
      if (crc32(all.subarray(0, HEADER_CHECKSUM_OFFSET)) !== all.readUInt32LE(HEADER_CHECKSUM_OFFSET))
        throw damaged();
      const end = HEADER_BYTES + all.readUInt32LE(LENGTH_OFFSET);
      if (bytes < end) {
        needed = end;
        break;
      }
      const content = all.subarray(HEADER_BYTES, end);
      if (crc32(content) !== all.readUInt32LE(CHECKSUM_OFFSET)) throw damaged();
      yield { kind: all[0], content };
      pieces = [all.subarray(end)];
      bytes -= end;
      needed = HEADER_BYTES;
    }
  }
}

/**
 * The position of a rank in a ring, and its connections: it sends to the next rank and receives from the previous one. All ranks must call
 * the same collective operations in the same order, with vectors of the same length.
 */
export interface ProcessGroup {
  /** From 0. */
  readonly index: number;
  readonly size: number;
  /** Bytes so far, including frame headers. */
  readonly sent: number;
  readonly received: number;
  /** Sends to the next rank. The caller may change the bytes as soon as the call returns. */
  send(bytes: Uint8Array): Promise<void>;
  /** Receives the next message of the previous rank. */
  receive(): Promise<Uint8Array>;
}

/** A single rank: nothing is sent. */
export const SINGLE_PROCESS_GROUP: ProcessGroup = {
  index: 0,
  size: 1,
  sent: 0,
  received: 0,
  send: () => Promise.reject(new Error('a single rank sends nothing')),
  receive: () => Promise.reject(new Error('a single rank receives nothing')),
};

/**
 * Replaces the values by their sums over all ranks, with the same bits on each: every chunk is summed once around the ring, and then
 * copied. A rank sends 2 (N - 1) / N times the vector (Patarasuk and Yuan 2009, "Bandwidth optimal all-reduce algorithms").
 */
export async function allReduce(ring: ProcessGroup, values: Float32Array): Promise<void> {
  const { index, size } = ring;
  const edge = (chunk: number) => Math.floor((chunk * values.length) / size);
  const chunk = (at: number) => {
    const index = (at + 2 * size) % size;
    return values.subarray(edge(index), edge(index + 1));
  };
  const exchange = async (
    out: number,
    into: number,
    combine: (own: Float32Array, received: Float32Array) => void,
  ) => {
    const own = chunk(into);
    const [, received] = await Promise.all([ring.send(bytesOf(chunk(out))), ring.receive()]);
    if (received.length !== own.byteLength)
      throw new Error(`received ${received.length} bytes for a chunk of ${own.byteLength}`);
    combine(own, floatsOf(received));
  };
  for (let round = 0; round < size - 1; round++) await exchange(index - round, index - round - 1, addTo);
  for (let round = 0; round < size - 1; round++)
    await exchange(index - round + 1, index - round, (own, received) => own.set(received));
}

function addTo(own: Float32Array, received: Float32Array): void {
  for (let i = 0; i < own.length; i++) own[i] += received[i];
}

/**
 * Returns the weighted mean of the vectors of all ranks, with the same bits on each. Values of a rank with weight 0 do not count. At
 * least one weight must be positive; weights and their sum are exact up to 2^24.
 */
export async function allReduceWeightedMean(
  ring: ProcessGroup,
  values: Float32Array,
  weight: number,
): Promise<Float32Array> {
  if (ring.size === 1) return values;
  // The weight is sent with the values, so that a step is one exchange.
  const sums = new Float32Array(values.length + 1);
  if (weight > 0) for (let i = 0; i < values.length; i++) sums[i] = weight * values[i];
  sums[values.length] = weight;
  await allReduce(ring, sums);
  return sums.subarray(0, values.length).map((sum) => sum / sums[values.length]);
}

/** Returns the values of all ranks in their order. They are sent as JSON, in which numbers keep all of their bits. */
export async function allGather<T>(ring: ProcessGroup, own: T): Promise<T[]> {
  const { index, size } = ring;
  const all = new Array<T>(size);
  all[index] = own;
  for (let round = 0; round < size - 1; round++) {
    const message = all[(index - round + size) % size];
    const [, received] = await Promise.all([ring.send(Buffer.from(JSON.stringify(message))), ring.receive()]);
    all[(index - round - 1 + size) % size] = JSON.parse(Buffer.from(received).toString()) as T;
  }
  return all;
}

const bytesOf = ({ buffer, byteOffset, byteLength }: Float32Array) =>
  new Uint8Array(buffer, byteOffset, byteLength);

/** A copy, because float32 views must be aligned to four bytes. */
const floatsOf = ({ buffer, byteOffset, byteLength }: Uint8Array) =>
  new Float32Array(buffer.slice(byteOffset, byteOffset + byteLength));
