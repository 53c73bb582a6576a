/** Token buckets: a client may make a burst of requests, and in the long run so many a second. */

/** Clients whose buckets are kept; who comes back after so many others has a full one. */
const MAX_CLIENTS = 10_000;
/** A full bucket is worth so many seconds. */
const BURST_SECONDS = 5;

interface Bucket {
  tokens: number;
  /** When it was looked at, ms. */
  at: number;
}

/** Invariants: no bucket holds more than BURST * perSecond; `buckets` are in the order of their last use. */
export class RateLimit {
  private readonly buckets = new Map<string, Bucket>();

  /** 0 for no limit. */
  constructor(readonly perSecond: number) {}

  /** Takes a token. The seconds to wait until there is one; 0 where the request may go on. `now` in ms. */
  take(client: string, now = performance.now()): number {
    if (this.perSecond === 0) return 0;
    const full = BURST_SECONDS * this.perSecond;
    const { tokens, at } = this.buckets.get(client) ?? { tokens: full, at: now };
    const there = Math.min(full, tokens + ((now - at) / 1000) * this.perSecond);
    const passes = there >= 1;
    this.buckets.delete(client);
    this.buckets.set(client, { tokens: passes ? there - 1 : there, at: now });
    if (this.buckets.size > MAX_CLIENTS)
      for (const [oldest] of this.buckets) {
        this.buckets.delete(oldest);
        break;
      }
    return passes ? 0 : (1 - there) / this.perSecond;
  }
}
