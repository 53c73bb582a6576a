/** Requests to an S3 server through the AWS SDK: so many at once, again after errors that pass. */
import { S3Client } from '@aws-sdk/client-s3';
import { Semaphore } from '../../async/index.js';
import { asS3Error, credentialsLabel, isDenied } from './s3-errors.js';
import { RetryState } from './s3-retry.js';

export interface S3Options {
  /** Longest time without a byte in either direction, ms. */
  timeout?: number;
  /** Times that a request is sent until it is given up. */
  attempts?: number;
  /** Most requests at once. */
  inFlight?: number;
}

const CONNECT_TIMEOUT_MS = 3000;

/** The client of one store. What it throws is a TW_STORE_ error, or what a signal was aborted with. */
export class RetryingS3Client {
  readonly concurrency: number;
  /** Holds a place for each request, until the last byte of its answer. */
  readonly semaphore: Semaphore;
  readonly client: S3Client;
  private readonly maxAttempts: number;
  /** Of the last request; the SDK knows it only then. */
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
      // Virtual hosts need DNS names for buckets, which servers of one's own seldom have.
      forcePathStyle: true,
      maxAttempts: 1,
      // A checksum in a trailer is refused by older servers; MD5 and SHA-256 are in every one.
      requestChecksumCalculation: 'WHEN_REQUIRED',
      responseChecksumValidation: 'WHEN_REQUIRED',
      // Would take a connection of its own for each request.
      expectContinueHeader: false,
      requestHandler: {
        connectionTimeout: CONNECT_TIMEOUT_MS,
        socketTimeout: timeout,
        httpAgent: { keepAlive: true, maxSockets: inFlight },
        httpsAgent: { keepAlive: true, maxSockets: inFlight },
      },
      // What it would say is thrown, too.
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

  /** Sends one request whose answer has no long body. `what` names the object or the operation. */
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
    const place = { url: this.url, bucket: this.bucket, endpoint: this.endpoint };
    return asS3Error(error, place, what, credentials);
  }
}

/** The region that is configured. Servers of one's own have none, but the SDK does not go without. */
async function regionOr(other: string): Promise<string> {
  const client = new S3Client({});
  try {
    return await client.config.region();
  } catch (error) {
    if ((error as Error).message === 'Region is missing') return other;
    throw error;
  } finally {
    client.destroy();
  }
}

function originOf({ protocol, hostname, port }: { protocol: string; hostname: string; port?: number }) {
  return `${protocol}//${hostname}${port ? `:${port}` : ''}`;
}
