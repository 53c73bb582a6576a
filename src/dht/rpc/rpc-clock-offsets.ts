/** Estimates how far the clocks of other nodes differ from the clock of this node, from the times in their answers. */
import { clockOffsetWarning } from '../errors.js';
import { MAX_CLOCK_SKEW_MS } from './message-signature.js';

/** The header of an answer with the time of the answering node, ms since 1970. */
export const TIME_HEADER = 'tilewright-time';
/** The error of an estimate is at most half of the round trip, so longer ones are ignored. */
const MAX_ROUND_TRIP_MS = 2000;
const WARNING_OFFSET_MS = MAX_CLOCK_SKEW_MS / 4;
const WARNING_INTERVAL_MS = 10 * 60_000;

export class ClockOffsets {
  /** By node id; positive if the other clock is ahead. */
  readonly seconds = new Map<string, number>();
  private readonly warnedAt = new Map<string, number>();

  /** `onWarning` gets a TW_DHT_CLOCK_OFFSET error, for each node at most once in ten minutes. */
  constructor(private readonly onWarning: (error: Error) => void) {}

  /** Adds the time in an answer to a request that was sent at `sentAt` on the monotonic clock (`performance.now`). */
  observe(
    { id, url }: { id: string; url: string },
    time: string | string[] | undefined,
    sentAt: number,
  ): void {
    const roundTripMs = performance.now() - sentAt;
    if (typeof time !== 'string' || !/^\d{1,15}$/.test(time) || roundTripMs > MAX_ROUND_TRIP_MS) return;
    const offsetMs = Number(time) + roundTripMs / 2 - Date.now();
    this.seconds.set(id, offsetMs / 1000);
    if (Math.abs(offsetMs) < WARNING_OFFSET_MS) return;
    const now = performance.now();
    if (now - (this.warnedAt.get(id) ?? -Infinity) < WARNING_INTERVAL_MS) return;
    this.warnedAt.set(id, now);
    this.onWarning(
      clockOffsetWarning(id, url, Math.round(offsetMs / 1000), Math.round(MAX_CLOCK_SKEW_MS / 1000)),
    );
  }
}
