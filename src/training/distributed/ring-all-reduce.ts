/**
 * Sums and exchanges over a ring of members, each of which sends to the next and receives from the previous one. All members must
 * call the same functions in the same order, with vectors of the same length.
 */

/** A member's place in a ring, and what goes over it. */
export interface ProcessGroup {
  /** From 0. */
  readonly index: number;
  readonly size: number;
  /** Bytes so far, with what frames them. */
  readonly sent: number;
  readonly received: number;
  /** To the next member. The bytes may be changed as soon as it is called. */
  send(bytes: Uint8Array): Promise<void>;
  /** What the previous member has sent, message by message. */
  receive(): Promise<Uint8Array>;
}

/** A ring of one: nothing is sent. */
export const SINGLE_PROCESS_GROUP: ProcessGroup = {
  index: 0,
  size: 1,
  sent: 0,
  received: 0,
  send: () => Promise.reject(new Error('a ring of one sends nothing')),
  receive: () => Promise.reject(new Error('a ring of one receives nothing')),
};

/**
 * Replaces the values by their sums over all members, the same bits on each: every chunk is summed up once, on its way round, and
 * then copied. A member sends 2 (N - 1) / N times the vector (Patarasuk and Yuan 2009, "Bandwidth optimal all-reduce algorithms").
 */
export async function allReduce(ring: ProcessGroup, values: Float32Array): Promise<void> {
  const { index, size } = ring;
  const edge = (chunk: number) => Math.floor((chunk * values.length) / size);
  const chunk = (at: number) => {
    const one = (at + 2 * size) % size;
    return values.subarray(edge(one), edge(one + 1));
  };
  const pass = async (out: number, into: number, take: (own: Float32Array, came: Float32Array) => void) => {
    const own = chunk(into);
    const [, came] = await Promise.all([ring.send(bytesOf(chunk(out))), ring.receive()]);
    if (came.length !== own.byteLength)
      throw new Error(`${came.length} bytes came for a chunk of ${own.byteLength}`);
    take(own, floatsOf(came));
  };
  for (let round = 0; round < size - 1; round++) await pass(index - round, index - round - 1, addTo);
  for (let round = 0; round < size - 1; round++)
    await pass(index - round + 1, index - round, (own, came) => own.set(came));
}

function addTo(own: Float32Array, came: Float32Array): void {
  for (let i = 0; i < own.length; i++) own[i] += came[i];
}

/**
 * The mean of the members' vectors by their weights, the same bits on each member. Of a member without weight the values do not
 * count. At least one weight must be more than 0; weights and their sum are exact up to 2^24.
 */
export async function allReduceWeightedMean(
  ring: ProcessGroup,
  values: Float32Array,
  weight: number,
): Promise<Float32Array> {
  if (ring.size === 1) return values;
  // The weight goes with the values, so that a step is one exchange.
  const sums = new Float32Array(values.length + 1);
  if (weight > 0) for (let i = 0; i < values.length; i++) sums[i] = weight * values[i];
  sums[values.length] = weight;
  await allReduce(ring, sums);
  return sums.subarray(0, values.length).map((sum) => sum / sums[values.length]);
}

/** What all members give, in their order. It goes as JSON, in which numbers keep all of their bits. */
export async function allGather<T>(ring: ProcessGroup, own: T): Promise<T[]> {
  const { index, size } = ring;
  const all = new Array<T>(size);
  all[index] = own;
  for (let round = 0; round < size - 1; round++) {
    const passed = all[(index - round + size) % size];
    const [, came] = await Promise.all([ring.send(Buffer.from(JSON.stringify(passed))), ring.receive()]);
    all[(index - round - 1 + size) % size] = JSON.parse(Buffer.from(came).toString()) as T;
  }
  return all;
}

const bytesOf = ({ buffer, byteOffset, byteLength }: Float32Array) =>
  new Uint8Array(buffer, byteOffset, byteLength);

/** A copy, since a float must lie at a multiple of four bytes. */
const floatsOf = ({ buffer, byteOffset, byteLength }: Uint8Array) =>
  new Float32Array(buffer.slice(byteOffset, byteOffset + byteLength));
