/** Decides when a request is repeated, and after how long. */

import { NETWORK_CODES } from '../../utils/network-codes.js';

/** Attempts of one request. */
export const MAX_ATTEMPTS = 6;
const FIRST_DELAY_MS = 200;
const MAX_DELAY_MS = 30_000;
/** A host that wants a longer pause fails the request. */
export const MAX_RETRY_AFTER_MS = 300_000;

const TRANSIENT_STATUS = new Set([408, 425, 429, 500, 502, 503, 504]);

/** An answer that ends too early. */
export const INCOMPLETE = 'TW_REMOTE_INCOMPLETE';

export const isTransientStatus = (status: number): boolean => TRANSIENT_STATUS.has(status);

export function isTransientError(error: unknown): boolean {
  const { code = '' } = error as NodeJS.ErrnoException;
  return NETWORK_CODES.includes(code) || code === INCOMPLETE || code.startsWith('HPE_');
}

/** Returns the delay before the next attempt: exponential back-off with full jitter, the first attempt is 0. `random`: 0 to 1. */
export function retryDelayMs(attempt: number, random: number): number {
  return random * Math.min(MAX_DELAY_MS, FIRST_DELAY_MS * 2 ** attempt);
}

/** Parses Retry-After (RFC 9110, section 10.2.3): seconds, or a date. Undefined if it is neither. */
export function parseRetryAfter(text: string | undefined, now: number): number | undefined {
  if (text === undefined) return undefined;
  if (/^\d+$/.test(text.trim())) return Number(text) * 1000;
  const time = Date.parse(text);
  return Number.isNaN(time) ? undefined : Math.max(0, time - now);
}
