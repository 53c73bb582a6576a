/** Decides how requests deal with a host that does not answer. */
import { hostDown } from '../errors.js';

/** Requests in a row that fail after all their attempts. */
const MAX_FAILURES = 3;
const PAUSE_MS = 60_000;

/**
 * A host that has answered before may be restarting: its requests wait once for a minute and are then tried again. A host that never
 * answered, or does not after the wait, gets no requests for a minute after a few failures, so that a job with thousands of its files does
 * not wait for each of them. An answer with an error shows that the host works.
 */
export class HostBreaker {
  private failures = 0;
  private hasAnswered = false;
  /** End of the wait of this outage; undefined before it. */
  private waitsUntil: number | undefined;
  private pausedUntil = Number.NEGATIVE_INFINITY;

  constructor(
    private readonly pauseMs = PAUSE_MS,
    private readonly now: () => number = () => performance.now(),
  ) {}

  /** Throws TW_REMOTE_HOST_DOWN while requests are stopped. After the pause, one more failure stops them again. */
  check(url: string, host: string): void {
    if (this.now() < this.pausedUntil) throw hostDown(url, host, MAX_FAILURES, this.pauseMs / 1000);
  }

  /** To be called if no attempt of a request was answered. Returns how long the request should wait before it is tried again, ms. */
  failed(): number | undefined {
    const now = this.now();
    if (this.hasAnswered) {
      this.waitsUntil ??= now + this.pauseMs;
      if (now < this.waitsUntil) return this.waitsUntil - now;
    }
    this.failures++;
    if (this.failures >= MAX_FAILURES) this.pausedUntil = now + this.pauseMs;
    return undefined;
  }

  answered(): void {
    this.failures = 0;
    this.hasAnswered = true;
    this.waitsUntil = undefined;
    this.pausedUntil = Number.NEGATIVE_INFINITY;
  }
}
