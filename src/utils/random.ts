/** Random numbers that are the same for the same seed on every machine. */

/** A stream of random numbers with its state. */
export interface RandomStream {
  /** In [0, 1). */
  next: () => number;
  state: number;
}

/** A stream that is the same for the same seed on every machine (mulberry32). */
export function randomStream(seed: number): RandomStream {
  const stream: RandomStream = {
    state: seed >>> 0,
    next() {
      stream.state = (stream.state + 0x6d2b79f5) >>> 0;
      let t = Math.imul(stream.state ^ (stream.state >>> 15), 1 | stream.state);
      t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
      return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
    },
  };
  return stream;
}

/**
 * The seed of one of several streams of a seed, such as that of a rank. Streams of other seeds and numbers differ: stream 1 of seed 1 is
 * not stream 0 of seed 2.
 */
export function streamSeed(seed: number, stream: number): number {
  const { next } = randomStream(seed);
  for (let skipped = 0; skipped < stream; skipped++) next();
  return Math.floor(next() * 2 ** 32);
}

/** A random order of 0 to count - 1 (Fisher-Yates). */
export function shuffledOrder(count: number, random: () => number): Uint32Array {
  const order = Uint32Array.from({ length: count }, (_, i) => i);
  for (let i = count - 1; i > 0; i--) {
    const j = Math.floor(random() * (i + 1));
    [order[i], order[j]] = [order[j], order[i]];
  }
  return order;
}
