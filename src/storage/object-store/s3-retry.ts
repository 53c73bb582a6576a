/** Which errors of an S3 server pass by themselves, and how long to wait for that. */
import { setTimeout as sleep } from 'node:timers/promises';

/** Wait after the first failed attempt, ms; twice as long after each further one. */
const FIRST_DELAY_MS = 200;
const MAX_DELAY_MS = 5000;

const NETWORK_CODES = [
  'ECONNREFUSED',
  'ECONNRESET',
  'ECONNABORTED',
  'EPIPE',
  'ETIMEDOUT',
  'EHOSTUNREACH',
  'EHOSTDOWN',
  'ENETUNREACH',
  'ENETDOWN',
  'ENOTFOUND',
  'EAI_AGAIN',
  'ERR_STREAM_PREMATURE_CLOSE',
];
/** Codes of S3 that come with a status that says otherwise. */
const TRANSIENT_CODES = [
  'TimeoutError',
  'RequestTimeout',
  'RequestTimeTooSkewed',
  'SlowDown',
  'BadDigest',
  'ConditionalRequestConflict',
];

/** What the AWS SDK throws, as far as it is looked at. */
export interface S3Failure extends Error {
  code?: string;
  $metadata?: { httpStatusCode?: number; clockSkewCorrected?: boolean };
}

export const statusOf = (error: S3Failure) => error.$metadata?.httpStatusCode ?? 0;

/** Whether the same request may well succeed a moment later. */
export function isTransient(error: S3Failure): boolean {
  const status = statusOf(error);
  if (status === 501 || status === 507) return false;
  if (status >= 500 || status === 429 || status === 408) return true;
  if (TRANSIENT_CODES.includes(error.name) || error.$metadata?.clockSkewCorrected) return true;
  return NETWORK_CODES.includes(error.code ?? '') || (error.code ?? '').startsWith('HPE_');
}

/**
 * Counts the failed attempts of one request and waits between them, with exponential back-off and jitter, so that many
 * clients do not come back at once. The AWS SDK repeats neither a body that it has begun to send from a stream nor one
 * that breaks off while it is read, so its own attempts are switched off.
 */
export class RetryState {
  private failed = 0;

  constructor(
    private readonly maxAttempts: number,
    private readonly signal?: AbortSignal,
  ) {}

  /** Something has arrived: what fails from now on is counted anew. */
  reset(): void {
    this.failed = 0;
  }

  /** Waits for the next attempt. Throws the error where there is none, or where it would be of no use. */
  async waitAfter(error: unknown): Promise<void> {
    this.signal?.throwIfAborted();
    if (!(error instanceof Error) || !isTransient(error) || ++this.failed >= this.maxAttempts) throw error;
    const longest = Math.min(MAX_DELAY_MS, FIRST_DELAY_MS * 2 ** (this.failed - 1));
    await sleep(longest * (0.5 + Math.random() / 2), undefined, { signal: this.signal });
  }
}
