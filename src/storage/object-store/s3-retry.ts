/** Transient errors of an S3 server, and how long to wait before a retry. */
import { setTimeout as sleep } from 'node:timers/promises';
import { NETWORK_CODES } from '../../utils/network-codes.js';

/** Delay after the first failed attempt; it doubles after each further one. */
const FIRST_DELAY_MS = 200;
const MAX_DELAY_MS = 5000;

const CONNECTION_CODES = [...NETWORK_CODES, 'ENOTFOUND'];
/** Codes that are transient although their status is not. */
const TRANSIENT_CODES = [
  'TimeoutError',
  'RequestTimeout',
  'RequestTimeTooSkewed',
  'SlowDown',
  'BadDigest',
  'ConditionalRequestConflict',
];

/** The members of the AWS SDK's errors that are used here. */
export interface S3Failure extends Error {
  code?: string;
  $metadata?: { httpStatusCode?: number; clockSkewCorrected?: boolean };
}

export const statusOf = (error: S3Failure) => error.$metadata?.httpStatusCode ?? 0;

/** True if the same request may succeed a moment later. */
export function isTransient(error: S3Failure): boolean {
  const status = statusOf(error);
  if (status === 501 || status === 507) return false;
  if (status >= 500 || status === 429 || status === 408) return true;
  if (TRANSIENT_CODES.includes(error.name) || error.$metadata?.clockSkewCorrected) return true;
  return CONNECTION_CODES.includes(error.code ?? '') || (error.code ?? '').startsWith('HPE_');
}

/**
 * Counts the failed attempts of one request and waits between them, with exponential back-off and jitter, so that many
 * clients do not retry at the same time. The AWS SDK retries neither an upload from a stream that it has begun to send nor a
 * download that breaks off, so its own retries are switched off.
 */
export class RetryState {
  private failed = 0;

  constructor(
    private readonly maxAttempts: number,
    private readonly signal?: AbortSignal,
  ) {}

  /** Call it when data has arrived: the count of failed attempts starts again. */
  reset(): void {
    this.failed = 0;
  }

  /** Waits for the next attempt. Throws the error if it is not transient or no attempt is left. */
  async waitAfter(error: unknown): Promise<void> {
    this.signal?.throwIfAborted();
    if (!(error instanceof Error) || !isTransient(error) || ++this.failed >= this.maxAttempts) throw error;
    const maxDelayMs = Math.min(MAX_DELAY_MS, FIRST_DELAY_MS * 2 ** (this.failed - 1));
    await sleep(maxDelayMs * (0.5 + Math.random() / 2), undefined, { signal: this.signal });
  }
}
