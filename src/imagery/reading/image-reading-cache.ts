/**
 * A cache of values with a limit in bytes. The least recently used value is dropped first.
 *
 * Invariants: `used` is the sum of the sizes of all complete values in `kept`, and at most `limit`; concurrent requests of a key share one
 * computation; a computation that failed is not kept.
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
      // A Map keeps the order of insertion, so the last key is the most recently used.
      this.kept.delete(key);
      this.kept.set(key, known);
      return known.value;
    }
    const entry = { value: make(), bytes: 0 };
    this.kept.set(key, entry);
    entry.value.then(
      (value) => {
        // The entry may have been dropped or replaced in the meantime.
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
