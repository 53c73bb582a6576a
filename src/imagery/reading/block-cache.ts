/**
 * Values that are costly to make, kept up to a number of bytes; the least recently used goes first.
 *
 * Invariants: `used` is the sum of the sizes of what has been made and is kept, and at most `limit`; a value that is being
 * made is made once for all who ask for it; one that failed is not kept.
 */
export class BlockCache<T> {
  private readonly kept = new Map<string, { value: Promise<T>; bytes: number }>();
  private used = 0;

  constructor(
    private readonly limit: number,
    private readonly sizeOf: (value: T) => number,
  ) {}

  get(key: string, make: () => Promise<T>): Promise<T> {
    const known = this.kept.get(key);
    if (known) {
      // Maps keep the order in which keys came: the last one is the most recently used.
      this.kept.delete(key);
      this.kept.set(key, known);
      return known.value;
    }
    const entry = { value: make(), bytes: 0 };
    this.kept.set(key, entry);
    entry.value.then(
      (value) => {
        // Others may have taken its place meanwhile.
        if (this.kept.get(key) !== entry) return;
        entry.bytes = this.sizeOf(value);
        this.used += entry.bytes;
        for (const [old, { bytes }] of this.kept) {
          if (this.used <= this.limit) break;
          this.kept.delete(old);
          this.used -= bytes;
        }
      },
      () => {
        if (this.kept.get(key) === entry) this.kept.delete(key);
      },
    );
    return entry.value;
  }
}
