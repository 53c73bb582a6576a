/** Requests to an S3 server through the AWS SDK, with a limit of concurrent requests and retries of transient errors. */
import { setTimeout as sleep } from 'node:timers/promises';
import { S3Client } from '@aws-sdk/client-s3';
import { Semaphore } from '../../async/index.js';
import { TilewrightError } from '../../errors.js';
import { describeSystemError, NETWORK_CODES } from '../../utils/system-errors.js';
import { storeCorrupt, storeDenied, storeFull, storeIo, storeNotFound, storeUnavailable } from '../errors.js';

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
function isTransient(error: S3Failure): boolean {
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
class RetryState {
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

const FULL_CODES = ['XMinioStorageFull', 'QuotaExceeded', 'InsufficientCapacity', 'InsufficientStorage'];

interface S3Location {
  url: string;
  bucket: string;
  /** Origin of the requests so far. */
  endpoint: string;
}

/** A response to HEAD has no body, so servers report only `NotFound`. */
const ABSENT_CODES = ['NoSuchKey', 'NotFound'];
/** Some have another status than 403. */
const DENIED_CODES = [
  'AccessDenied',
  'InvalidAccessKeyId',
  'SignatureDoesNotMatch',
  'InvalidToken',
  'ExpiredToken',
  'XAdminUserNotFound',
];

export const isMissingObject = (error: unknown) => ABSENT_CODES.includes((error as Error).name);

function isDenied(error: unknown): boolean {
  return DENIED_CODES.includes((error as Error).name) || [401, 403].includes(statusOf(error as S3Failure));
}

/**
 * The error of an S3 server or of the AWS SDK as one that a user can act on, without secrets. `what` names the object or the operation,
 * `credentials` says which were used.
 */
function asS3Error(error: unknown, location: S3Location, what: string, credentials: string): unknown {
  if (error instanceof TilewrightError || !(error instanceof Error)) return error;
  const { url, bucket, endpoint } = location;
  const status = statusOf(error);
  const text = [...new Set([error.name, status || '', error.message])].filter(Boolean).join(' ');
  if (error.name === 'CredentialsProviderError')
    return storeDenied.because(
      error,
      url,
      'no credentials were found; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE',
    );
  if (isDenied(error))
    return storeDenied.because(
      error,
      url,
      `${endpoint} answered ${text} to ${credentials}; check them and what they allow`,
    );
  if (error.name === 'NoSuchBucket')
    return storeNotFound.because(error, url, `bucket ${bucket} at ${endpoint}; make it first`);
  if (isMissingObject(error)) return storeNotFound.because(error, url, `object ${what}`);
  if (status === 507 || FULL_CODES.includes(error.name)) return storeFull.because(error, url);
  if (error.name === 'BadDigest')
    return storeCorrupt.because(error, what, url, 'its bytes changed on the way');
  if ((error as NodeJS.ErrnoException).code === 'ERR_INVALID_URL')
    return storeUnavailable.because(
      error,
      url,
      endpoint,
      'AWS_ENDPOINT_URL_S3 or the AWS profile does not have a URL such as https://s3.example.org',
    );
  if (isTransient(error)) return storeUnavailable.because(error, url, endpoint, reasonOf(error) ?? text);
  if (status === 301 || status === 307)
    return storeIo.because(error, url, what, `${text}; the bucket is in another region: set AWS_REGION`);
  return status ? storeIo.because(error, url, what, text) : error;
}

/** The reason in words; undefined for errors of the SDK. It names several errors of sockets `TimeoutError`, so its message says more. */
const reasonOf = (error: Error) => (error.name === 'TimeoutError' ? undefined : describeSystemError(error));

/** Name of the credentials that the SDK uses, from the marks that its providers leave. */
function credentialsLabel(identity: object): string {
  const marks = '$source' in identity ? Object.keys(identity.$source as object) : [];
  if (marks.includes('CREDENTIALS_ENV_VARS'))
    return 'AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY of the environment';
  if (marks.some((mark) => mark.includes('PROFILE')))
    return `the AWS profile "${process.env.AWS_PROFILE ?? 'default'}"`;
  return 'the credentials that the AWS SDK has found on this machine';
}

export interface S3Options {
  /** Maximum time without a byte in either direction, ms. */
  timeout?: number;
  /** Maximum number of attempts for one request. */
  attempts?: number;
  /** Maximum number of concurrent requests. */
  inFlight?: number;
  /** Bytes above which a file is sent in parts of this size; at least 5 MiB. Default: 1 GiB. */
  partBytes?: number;
}

const CONNECT_TIMEOUT_MS = 3000;

/** The client of one store. It throws TW_STORE_ errors, or the reason of an aborted signal. */
export class RetryingS3Client {
  readonly concurrency: number;
  /** Acquired by each request until the last byte of its response. */
  readonly semaphore: Semaphore;
  readonly client: S3Client;
  private readonly maxAttempts: number;
  /** Origin of the last request; the SDK resolves it only then. */
  private endpoint = 'its endpoint';

  static async open(url: string, bucket: string, options: S3Options = {}): Promise<RetryingS3Client> {
    return new RetryingS3Client(url, bucket, await regionOr('us-east-1'), options);
  }

  private constructor(
    private readonly url: string,
    private readonly bucket: string,
    region: string,
    { timeout = 10_000, attempts = 4, inFlight = 32 }: S3Options,
  ) {
    this.concurrency = inFlight;
    this.semaphore = new Semaphore(inFlight);
    this.maxAttempts = attempts;
    this.client = new S3Client({
      region,
      // Virtual hosts need DNS names for buckets, which self-hosted servers seldom have.
      forcePathStyle: true,
      maxAttempts: 1,
      // Older servers refuse a checksum in a trailer; all of them support MD5 and SHA-256.
      requestChecksumCalculation: 'WHEN_REQUIRED',
      responseChecksumValidation: 'WHEN_REQUIRED',
      // It would use a separate connection for each request.
      expectContinueHeader: false,
      requestHandler: {
        connectionTimeout: CONNECT_TIMEOUT_MS,
        socketTimeout: timeout,
        httpAgent: { keepAlive: true, maxSockets: inFlight },
        httpsAgent: { keepAlive: true, maxSockets: inFlight },
      },
      // The SDK also throws what it logs.
      logger: { debug() {}, info() {}, warn() {}, error() {} },
    });
    this.client.middlewareStack.add(
      (next) => (args) => {
        this.endpoint = originOf(args.request as Parameters<typeof originOf>[0]);
        return next(args);
      },
      { step: 'finalizeRequest', name: 'noteEndpoint' },
    );
  }

  retryState(signal?: AbortSignal): RetryState {
    return new RetryState(this.maxAttempts, signal);
  }

  /** Sends one request whose response has no long body. `what` names the object or the operation. */
  async send<T>(what: string, send: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    const release = await this.semaphore.acquire(signal);
    const attempts = this.retryState(signal);
    try {
      for (;;)
        try {
          return await send();
        } catch (error) {
          await attempts.waitAfter(error);
        }
    } catch (error) {
      throw await this.explainError(error, what, signal);
    } finally {
      release();
    }
  }

  async explainError(error: unknown, what: string, signal?: AbortSignal): Promise<unknown> {
    if (signal?.aborted) return signal.reason;
    const credentials = isDenied(error) ? credentialsLabel(await this.client.config.credentials()) : '';
    const location = { url: this.url, bucket: this.bucket, endpoint: this.endpoint };
    return asS3Error(error, location, what, credentials);
  }
}

/** The configured region, or `fallback`. Self-hosted servers have none, but the SDK requires one. */
async function regionOr(fallback: string): Promise<string> {
  const client = new S3Client({});
  try {
    return await client.config.region();
  } catch (error) {
    if ((error as Error).message === 'Region is missing') return fallback;
    throw error;
  } finally {
    client.destroy();
  }
}

function originOf({ protocol, hostname, port }: { protocol: string; hostname: string; port?: number }) {
  return `${protocol}//${hostname}${port ? `:${port}` : ''}`;
}
