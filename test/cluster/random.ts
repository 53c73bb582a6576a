/** Seeded random choices. */

/** Uniform in [0, 1): the generator mulberry32. */
function generator(seed: number): () => number {
  let state = seed | 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let h = Math.imul(state ^ (state >>> 15), 1 | state);
    h = (h + Math.imul(h ^ (h >>> 7), 61 | h)) ^ h;
    return ((h ^ (h >>> 14)) >>> 0) / 2 ** 32;
  };
}

export class Random {
  private readonly next: () => number;

  constructor(private readonly seed: number) {
    this.next = generator(seed);
  }

  /** In [from, to). */
  between(from: number, to: number): number {
    return from + this.next() * (to - from);
  }

  /** An integer in [0, below). */
  below(below: number): number {
    return Math.floor(this.next() * below);
  }

  pick<T>(from: readonly T[]): T {
    if (from.length === 0) throw new Error('nothing to choose from');
    return from[this.below(from.length)]!;
  }

  chance(of: number): boolean {
    return this.next() < of;
  }

  /** Another sequence, which does not depend on the position in this one. */
  fork(name: string): Random {
    let h = this.seed;
    for (const char of name) h = Math.imul(h ^ char.charCodeAt(0), 0x9e3779b1);
    return new Random(h);
  }
}
