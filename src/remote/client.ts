/**
 * Requests to hosts on the internet: within the host policy, with retries, limits of size and time, and few requests to one host at the
 * same time. Proxies are not used.
 */
import {
  Agent as HttpAgent,
  request as httpRequest,
  type IncomingHttpHeaders,
  type IncomingMessage,
} from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { brotliDecompress, gunzip, inflate, inflateRaw } from 'node:zlib';
import { Semaphore } from '../async/index.js';
import { TilewrightError } from '../errors.js';
import { NETWORK_CODES } from '../utils/system-errors.js';
import { version } from '../version.js';
import {
  badRemoteEncoding,
  badRemoteUrl,
  loginPage,
  remoteRefused,
  remoteTooLarge,
  remoteUnreachable,
} from './errors.js';
import {
  checkUrl,
  HostBreaker,
  type HostPolicy,
  publicLookup,
  withoutSecrets,
  withoutSignature,
} from './hosts.js';

export interface AuthorizedRequest {
  /** Address over HTTP, which can hold a signature. */
  url: string;
  headers: Record<string, string>;
}

/** Adds credentials to requests. */
export interface RequestCredentials {
  /** Called before each attempt. `address`: over HTTP, or `s3://bucket/key`. */
  authorize(address: string, method: string, signal?: AbortSignal): Promise<AuthorizedRequest>;
  /** Called with each answer. Returns true if `authorize` would now result in another request, so that it is sent once more. */
  renew(address: string, answer: { status: number; headers: IncomingHttpHeaders }): boolean;
  close(): void;
}

/** For clients without credentials. */
const NO_CREDENTIALS: RequestCredentials = {
  authorize: async (url) => ({ url, headers: {} }),
  renew: () => false,
  close: () => {},
};

/** Attempts of one request. */
const MAX_ATTEMPTS = 6;
const FIRST_RETRY_DELAY_MS = 200;
const MAX_RETRY_DELAY_MS = 30_000;
/** A host that wants a longer pause fails the request. */
const MAX_RETRY_AFTER_MS = 300_000;

const TRANSIENT_STATUS = new Set([408, 425, 429, 500, 502, 503, 504]);

/** An answer that ends too early. */
const INCOMPLETE = 'TW_REMOTE_INCOMPLETE';

const isTransientStatus = (status: number): boolean => TRANSIENT_STATUS.has(status);

function isTransientError(error: unknown): boolean {
  const { code = '' } = error as NodeJS.ErrnoException;
  return NETWORK_CODES.includes(code) || code === INCOMPLETE || code.startsWith('HPE_');
}

/** Returns the delay before the next attempt: exponential back-off with full jitter, the first attempt is 0. `random`: 0 to 1. */
export function retryDelayMs(attempt: number, random: number): number {
  return random * Math.min(MAX_RETRY_DELAY_MS, FIRST_RETRY_DELAY_MS * 2 ** attempt);
}

/** Parses Retry-After (RFC 9110, section 10.2.3): seconds, or a date. Undefined if it is neither. */
export function parseRetryAfter(text: string | undefined, now: number): number | undefined {
  if (text === undefined) return undefined;
  if (/^\d+$/.test(text.trim())) return Number(text) * 1000;
  const time = Date.parse(text);
  return Number.isNaN(time) ? undefined : Math.max(0, time - now);
}

/** More than logins need. Others are ignored, because a host chooses how many it sends. */
const MAX_COOKIES = 20;
const MAX_COOKIE_CHARS = 4096;

/**
 * Cookies of logins that redirect (such as NASA Earthdata Login). Invariant: the cookies of a host are only sent to the same origin.
 * Attributes other than name and value are ignored.
 */
class SessionCookies {
  private readonly origins = new Map<string, Map<string, string>>();

  /** Adds the cookies of an answer. An empty value deletes its cookie. */
  add({ origin }: URL, setCookie: readonly string[] = []): void {
    const cookies = this.origins.get(origin) ?? new Map<string, string>();
    for (const line of setCookie) {
      const [, name, value] = /^\s*([^=;\s]+)=([^;]*)/.exec(line.slice(0, MAX_COOKIE_CHARS)) ?? [];
      if (name === undefined || value === undefined) continue;
      if (value === '') cookies.delete(name);
      else if (cookies.has(name) || cookies.size < MAX_COOKIES) cookies.set(name, value.trim());
    }
    if (cookies.size > 0) this.origins.set(origin, cookies);
  }

  /** The header for a request; empty without cookies. */
  headersFor({ origin }: URL): { cookie?: string } {
    const cookies = this.origins.get(origin);
    if (!cookies || cookies.size === 0) return {};
    return { cookie: [...cookies].map(([name, value]) => `${name}=${value}`).join('; ') };
  }
}

/** Concurrent requests to one host. Public archives refuse clients that send many more. */
const MAX_REQUESTS_PER_HOST = 8;
/** A login redirects to another host and back, and then to the file. */
const MAX_REDIRECTS = 8;
const SEE_OTHER = 303;
const PARTIAL_CONTENT = 206;
const CONNECT_TIMEOUT_MS = 10_000;
/** A connection that delivers no byte for this long is given up. */
const IDLE_TIMEOUT_MS = 60_000;
/** A body that is slower than this over a period is given up, so that no host holds a job for ever. */
const MIN_BYTES_PER_SECOND = 1000;
/** Bytes of an answer without content, such as an error or a redirect. The rest is not read. */
const MAX_OTHER_BYTES = 65_536;
/** Bytes of the answer that an error message quotes. */
const MAX_DETAIL_BYTES = 300;

/** Times of waiting for a host, ms. */
interface AnswerTimes {
  /** From the request to the end of the headers. Slow lines and interim answers (1xx) do not extend it. */
  head: number;
  /** Over which the rate of the body is measured. */
  rate: number;
  /** For which a host that does not answer gets no requests. */
  pause?: number;
}

const ANSWER_TIMES: AnswerTimes = { head: 120_000, rate: 120_000 };

interface RemoteRequest {
  method?: 'GET' | 'POST';
  headers?: Record<string, string>;
  /** Headers that a document asks for; they are sent to the origin of the address alone. */
  linkHeaders?: Record<string, string>;
  body?: string;
  /** Limit of the answer, bytes. */
  maxBytes: number;
  /** Statuses that are returned and not thrown, in addition to 200. */
  accept?: readonly number[];
  /** True for files: a web page is refused with TW_REMOTE_LOGIN. */
  isFile?: boolean;
  /** Gets the bytes of an answer with status 200 or 206, whose `body` is then empty. */
  sink?: BodySink;
  signal?: AbortSignal;
}

/** Takes a long answer piece by piece. */
interface BodySink {
  /** Headers of the next attempt, so that it can request only the bytes that are missing. */
  headers?(): Record<string, string>;
  /** Called before the first byte of each attempt. An error ends the request; false ends it without the bytes. */
  start(head: Omit<RemoteResponse, 'body'>): Promise<boolean> | boolean;
  write(chunk: Buffer): Promise<void>;
}

export interface RemoteResponse {
  status: number;
  headers: IncomingHttpHeaders;
  body: Buffer;
}

interface HostState {
  breaker: HostBreaker;
  permits: Semaphore;
  /** Time before which no request is sent, because the host has asked for a pause; ms of `performance.now`. */
  pausedUntil: number;
}

/**
 * Sends requests over connections that stay open; `close` ends them, and no request is sent afterwards. Invariant: the policy allows each
 * address that is requested, redirects included.
 */
export class HttpClient {
  private readonly hosts = new Map<string, HostState>();
  private readonly agents = {
    'http:': new HttpAgent({ keepAlive: true }),
    'https:': new HttpsAgent({ keepAlive: true }),
  };

  private readonly cookies = new SessionCookies();
  private isClosed = false;

  constructor(
    private readonly policy: HostPolicy,
    private readonly credentials: RequestCredentials = NO_CREDENTIALS,
    private readonly times = ANSWER_TIMES,
  ) {}

  close(): void {
    this.isClosed = true;
    for (const agent of Object.values(this.agents)) agent.destroy();
    this.credentials.close();
  }

  /**
   * Sends a request to an address over HTTP, or for an object `s3://bucket/key`. Repeats it after transient errors and follows redirects.
   * Decompresses documents. Throws TW_REMOTE_... and the reason of the signal.
   */
  async request(address: string, given: RemoteRequest): Promise<RemoteResponse> {
    const { accept = [] } = given;
    let at = address;
    let request = given;
    for (let redirects = 0; ; redirects++) {
      const { url, isAuthorized, hasCredential, ...response } = await this.requestOne(at, request);
      const { status, headers, body } = response;
      const { location } = headers;
      if (status >= 300 && status < 400 && location !== undefined && !accept.includes(status)) {
        if (redirects === MAX_REDIRECTS)
          throw badRemoteUrl(withoutSecrets(address), 'it is redirected too often');
        this.cookies.add(url, headers['set-cookie']);
        at = redirectTarget(location, url);
        if (status === SEE_OTHER) request = { ...request, method: 'GET', body: undefined };
        if (!isSameOrigin(url, new URL(at))) request = forOtherHost(request, url);
        continue;
      }
      if (status === 200 && !request.isFile && !request.sink)
        return { ...response, body: await decoded(headers, body, withoutSecrets(at), request.maxBytes) };
      if (status === 200 || accept.includes(status)) return response;
      // A host can repeat the credentials that it was sent.
      const excerpt = isAuthorized ? s3ErrorCode(headers, body) : excerptOf(headers, body);
      throw remoteRefused(withoutSecrets(at), status, excerpt, hasCredential);
    }
  }

  private async requestOne(
    address: string,
    request: RemoteRequest,
  ): Promise<RemoteResponse & { url: URL; isAuthorized: boolean; hasCredential: boolean }> {
    const { method = 'GET', signal } = request;
    let isRenewed = false;
    for (let attempt = 0; ; attempt++) {
      let delay = retryDelayMs(attempt, Math.random());
      let host: HostState | undefined;
      if (this.isClosed) throw remoteUnreachable(withoutSecrets(address), new Error('the job has ended'));
      try {
        const authorized = await this.credentials.authorize(address, method, signal);
        const { url, isNamed } = checkUrl(authorized.url, this.policy);
        const state = this.hostOf(url);
        host = state;
        const response = await state.permits.run(async () => {
          state.breaker.check(withoutSecrets(address), url.host);
          await pauseUntil(state.pausedUntil, signal);
          const own = {
            ...{ ...request.headers, ...request.sink?.headers?.(), ...request.linkHeaders },
            ...{ ...this.cookies.headersFor(url), ...authorized.headers },
          };
          const hasHeader = Object.keys(own).some((name) => /^(authorization|cookie)$/i.test(name));
          const isAuthorized = authorized.url !== address || hasHeader;
          const hasCredential = hasHeader || withoutSignature(url.href) !== url.href;
          return {
            url,
            isAuthorized,
            hasCredential,
            ...(await this.send(url, isNamed, { ...request, headers: own })),
          };
        }, signal);
        host.breaker.answered();
        const { status, headers } = response;
        if (!isRenewed && this.credentials.renew(address, response)) {
          isRenewed = true;
          continue;
        }
        if (!isTransientStatus(status) || attempt + 1 >= MAX_ATTEMPTS) return response;
        const asked = parseRetryAfter(headers['retry-after'], Date.now());
        if (asked !== undefined && asked > MAX_RETRY_AFTER_MS) return response;
        if (asked !== undefined) host.pausedUntil = Math.max(host.pausedUntil, performance.now() + asked);
        delay = asked ?? delay;
      } catch (error) {
        signal?.throwIfAborted();
        if (error instanceof TilewrightError) throw error;
        const isTransient = isTransientError(error);
        const isLast = attempt + 1 >= MAX_ATTEMPTS;
        const wait = isTransient && isLast ? host?.breaker.failed() : undefined;
        if (!isTransient || (isLast && wait === undefined))
          throw remoteUnreachable.because(error, withoutSecrets(address), error);
        if (wait !== undefined) {
          delay = wait;
          attempt = -1;
        }
      }
      await sleep(delay, undefined, { signal });
    }
  }

  private hostOf({ host }: URL): HostState {
    const known = this.hosts.get(host) ?? {
      breaker: new HostBreaker(this.times.pause),
      permits: new Semaphore(MAX_REQUESTS_PER_HOST),
      pausedUntil: 0,
    };
    this.hosts.set(host, known);
    return known;
  }

  private send(url: URL, isNamed: boolean, given: RemoteRequest): Promise<RemoteResponse> {
    const { method = 'GET', body, headers, signal } = given;
    return new Promise((resolve, reject) => {
      const isTls = url.protocol === 'https:';
      const options = {
        ...{ method, signal, agent: this.agents[isTls ? 'https:' : 'http:'] },
        ...(!isNamed && { lookup: publicLookup }),
        headers: {
          'user-agent': `tilewright/${version}`,
          // Ranges of a compressed answer would be of other bytes.
          'accept-encoding': 'identity',
          ...headers,
          ...(body !== undefined && { 'content-length': Buffer.byteLength(body) }),
        },
      };
      let isAnswered = false;
      const { head, rate } = this.times;
      const sent = (isTls ? httpsRequest : httpRequest)(url, options, (answer) => {
        isAnswered = true;
        clearTimeout(headTimer);
        readBody(answer, withoutSecrets(url), given, rate).then(
          (bytes) => resolve({ status: answer.statusCode ?? 0, headers: answer.headers, body: bytes }),
          reject,
        );
      });
      const fail = (what: string) => sent.destroy(Object.assign(new Error(what), { code: 'ETIMEDOUT' }));
      const headTimer = setTimeout(() => fail(`no answer within ${head / 1000} s`), head);
      sent.setTimeout(IDLE_TIMEOUT_MS, () => fail(`no byte for ${IDLE_TIMEOUT_MS / 1000} s`));
      sent.on('socket', (socket) => {
        if (!socket.connecting) return;
        const timer = setTimeout(
          () => fail(`no connection within ${CONNECT_TIMEOUT_MS / 1000} s`),
          CONNECT_TIMEOUT_MS,
        );
        const stop = () => clearTimeout(timer);
        socket.once('connect', stop);
        socket.once('close', stop);
      });
      sent.on('error', reject);
      // An answer that changes the protocol ends the connection without an error.
      sent.on('close', () => {
        clearTimeout(headTimer);
        if (!isAnswered)
          reject(
            Object.assign(new Error('the connection was closed without an answer'), { code: 'ECONNRESET' }),
          );
      });
      sent.end(body);
    });
  }
}

function redirectTarget(location: string, url: URL): string {
  if (URL.canParse(location, url.href)) return new URL(location, url).href;
  // The text is not quoted: it can repeat credentials.
  throw badRemoteUrl(withoutSecrets(url), 'it is redirected to an address that is not a URL');
}

/** True for the same host and port, with or without TLS if both ports are the default ones. */
const isSameOrigin = (a: URL, b: URL): boolean =>
  a.origin === b.origin || (a.hostname === b.hostname && a.port === '' && b.port === '');

/** A request as another host gets it: nothing in it is composed by the host that redirects. */
function forOtherHost({ linkHeaders: _, ...request }: RemoteRequest, from: URL): RemoteRequest {
  if (request.method === 'POST')
    throw badRemoteUrl(withoutSecrets(from), 'it redirects a search to another host; give the address there');
  return request;
}

async function pauseUntil(time: number, signal?: AbortSignal): Promise<void> {
  const wait = time - performance.now();
  if (wait > 0) await sleep(wait, undefined, { signal });
}

async function readBody(
  answer: IncomingMessage,
  url: string,
  { accept = [], maxBytes, isFile, sink }: RemoteRequest,
  rateMs: number,
): Promise<Buffer> {
  const { statusCode: status = 0, headers } = answer;
  if (isFile && status === 200 && headers['content-type']?.startsWith('text/html')) {
    answer.destroy();
    throw loginPage(url);
  }
  const wanted = Number(headers['content-length'] ?? Number.NaN);
  const chunks: Buffer[] = [];
  const hasContent = status === 200 || (status === PARTIAL_CONTENT && accept.includes(status));
  const into = hasContent ? sink : undefined;
  try {
    if ((await into?.start({ status, headers })) === false) {
      answer.destroy();
      return Buffer.alloc(0);
    }
  } catch (error) {
    answer.destroy();
    throw error;
  }
  let bytes = 0;
  const stopWatching = watchRate(answer, () => bytes, rateMs);
  try {
    for await (const chunk of answer as AsyncIterable<Buffer>) {
      bytes += chunk.length;
      if (hasContent && bytes > maxBytes) throw remoteTooLarge(url, maxBytes);
      if (into) await into.write(chunk);
      else chunks.push(chunk);
      if (!hasContent && bytes > MAX_OTHER_BYTES) return Buffer.concat(chunks);
    }
  } finally {
    stopWatching();
  }
  if (Number.isFinite(wanted) && bytes < wanted)
    throw Object.assign(new Error(`the answer ended after ${bytes} of ${wanted} bytes`), {
      code: INCOMPLETE,
    });
  return Buffer.concat(chunks);
}

type Decoder = (bytes: Buffer, options: { maxOutputLength: number }) => Promise<Buffer>;

const ungzip: Decoder = promisify(gunzip);

/** Content codings (RFC 9110, section 8.4.1). Some hosts send `deflate` without the header of zlib. */
const DECODERS = new Map<string, Decoder>([
  ['gzip', ungzip],
  ['x-gzip', ungzip],
  ['deflate', (bytes, options) => promisify((bytes[0] & 15) === 8 ? inflate : inflateRaw)(bytes, options)],
  ['br', promisify(brotliDecompress)],
  ['identity', async (bytes) => bytes],
]);
/** Codings of one answer: those of the stored file, and one of the host. */
const MAX_CODINGS = 3;

/**
 * The bytes of a document without its codings. Static hosts send files that are stored compressed, even to clients that do not accept them,
 * and files such as `catalog.json.gz` without a header. Throws TW_REMOTE_BAD_ENCODING and TW_REMOTE_TOO_LARGE.
 */
async function decoded(
  headers: IncomingHttpHeaders,
  body: Buffer,
  url: string,
  maxBytes: number,
): Promise<Buffer> {
  const codings = (headers['content-encoding'] ?? '')
    .toLowerCase()
    .split(',')
    .map((name) => name.trim());
  const decoders = codings.filter((name) => name !== '').map((name) => DECODERS.get(name));
  const isGzip = (bytes: Buffer) => bytes[0] === 0x1f && bytes[1] === 0x8b;
  let bytes = body;
  for (let count = 0; decoders.length > 0 || isGzip(bytes); count++) {
    const decoder = decoders.length > 0 ? decoders.pop() : ungzip;
    if (!decoder) throw badRemoteEncoding(url, 'its coding is not gzip, deflate or br');
    if (count === MAX_CODINGS) throw badRemoteEncoding(url, `it has more than ${MAX_CODINGS} codings`);
    bytes = await decoder(bytes, { maxOutputLength: maxBytes }).catch((error) => {
      throw error.code === 'ERR_BUFFER_TOO_LARGE'
        ? remoteTooLarge.because(error, url, maxBytes)
        : badRemoteEncoding.because(error, url, error.message);
    });
  }
  return bytes;
}

/** Ends an answer that is too slow, also one that sends bytes which are not of its body. Returns a function that ends the watch. */
function watchRate(answer: IncomingMessage, received: () => number, periodMs: number): () => void {
  let before = 0;
  const timer = setInterval(() => {
    const bytes = received() - before;
    before = received();
    if (bytes >= (MIN_BYTES_PER_SECOND * periodMs) / 1000) return;
    const error = new Error(`the answer has less than ${MIN_BYTES_PER_SECOND} bytes a second`);
    answer.destroy(Object.assign(error, { code: INCOMPLETE }));
  }, periodMs);
  return () => clearInterval(timer);
}

/** The start of an answer in text or JSON, on one line. HTML is left out. */
function excerptOf(headers: IncomingHttpHeaders, body: Buffer): string {
  if (headers['content-encoding'] !== undefined) return '';
  if (!/json|text\/plain/.test(headers['content-type'] ?? '')) return s3ErrorCode(headers, body);
  return body
    .subarray(0, MAX_DETAIL_BYTES)
    .toString('utf8')
    .replace(/[\s\p{Cc}]+/gu, ' ')
    .trim();
}

/** The code of an error of S3, such as AccessDenied. */
function s3ErrorCode(headers: IncomingHttpHeaders, body: Buffer): string {
  if (!headers['content-type']?.includes('xml')) return '';
  return /<Code>([A-Za-z]{1,60})<\/Code>/.exec(body.toString('utf8', 0, MAX_DETAIL_BYTES))?.[1] ?? '';
}
