/** Stops requests to a host that does not answer, so that a job with thousands of its files does not wait for each of them. */
import { hostDown } from '../errors.js';

/** Requests in a row that fail after all their attempts. */
const MAX_FAILURES = 3;
const PAUSE_MS = 60_000;

/** Counts connections that fail. An answer with an error shows that the host works. */
export class HostBreaker {
  private failures = 0;
  private pausedUntil = Number.NEGATIVE_INFINITY;

  constructor(private readonly now: () => number = () => performance.now()) {}

  /** Throws TW_REMOTE_HOST_DOWN while requests are stopped. After the pause, one more failure stops them again. */
  check(url: string, host: string): void {
    if (this.now() < this.pausedUntil) throw hostDown(url, host, MAX_FAILURES, PAUSE_MS / 1000);
  }

  /** To be called if a request has failed after all its attempts. */
  failed(): void {
    this.failures++;
    if (this.failures >= MAX_FAILURES) this.pausedUntil = this.now() + PAUSE_MS;
  }

  answered(): void {
    this.failures = 0;
    this.pausedUntil = Number.NEGATIVE_INFINITY;
  }
}
