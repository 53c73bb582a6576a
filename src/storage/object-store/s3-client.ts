/** Requests to an S3 server through the AWS SDK, with a limit of concurrent requests and retries of transient errors. */
import { S3Client } from '@aws-sdk/client-s3';
import { Semaphore } from '../../async/index.js';
import { asS3Error, credentialsLabel, isDenied } from './s3-errors.js';
import { RetryState } from './s3-retry.js';

export interface S3Options {
  /** Maximum time without a byte in either direction, ms. */
  timeout?: number;
  /** Maximum number of attempts for one request. */
  attempts?: number;
  /** Maximum number of concurrent requests. */
  inFlight?: number;
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
