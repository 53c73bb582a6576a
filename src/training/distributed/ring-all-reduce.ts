/**
 * Collective operations over a ring of ranks, each of which sends to the next and receives from the previous one. All ranks must call the
 * same functions in the same order, with vectors of the same length.
 */

/** The position of a rank in a ring, and its connections. */
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
