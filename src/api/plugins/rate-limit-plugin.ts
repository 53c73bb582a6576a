/** Token buckets: they allow a burst of requests and limit the mean rate of each client. */

/** Clients whose buckets are kept, the most recent ones. */
const MAX_CLIENTS = 10_000;
/** A full bucket holds the tokens of this many seconds. */
const BURST_SECONDS = 5;

interface Bucket {
  tokens: number;
  /** Time of the last update, ms. */
  at: number;
}

/** Invariants: a bucket holds at most BURST_SECONDS * perSecond tokens; `buckets` are in the order of their last use. */
export class RateLimit {
  private readonly buckets = new Map<string, Bucket>();

  /** 0 for no limit. */
  constructor(readonly perSecond: number) {}

  /** Takes a token and returns 0. If there is no token, returns the seconds until the next one. `now` in ms. */
  take(client: string, now = performance.now()): number {
    if (this.perSecond === 0) return 0;
    const full = BURST_SECONDS * this.perSecond;
    const { tokens, at } = this.buckets.get(client) ?? { tokens: full, at: now };
    const available = Math.min(full, tokens + ((now - at) / 1000) * this.perSecond);
    const passes = available >= 1;
    this.buckets.delete(client);
    this.buckets.set(client, { tokens: passes ? available - 1 : available, at: now });
    if (this.buckets.size > MAX_CLIENTS) this.buckets.delete(this.buckets.keys().next().value!);
    return passes ? 0 : (1 - available) / this.perSecond;
  }
}
