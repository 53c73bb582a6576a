/**
 * Requests to the JSON gateway of etcd's servers (grpc-gateway: every call of the v3 API is a POST; 64-bit numbers are strings,
 * bytes are base64, default values are left out).
 */
import { type IncomingMessage, request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';
import { json, text } from 'node:stream/consumers';
import { backOff } from '../async/index.js';
import { messageOf, TilewrightError } from '../errors.js';
import {
  badEtcdUrl,
  coordinationFull,
  coordinationRefused,
  coordinationUnavailable,
  leaseGone,
  outcomeUnknown,
} from './errors.js';
import { parseToken } from './etcd-responses.js';

/** gRPC status codes that the gateway passes on in `code`. */
const NOT_FOUND = 5;
const EXHAUSTED = 8;
const UNAUTHENTICATED = 16;
/** Invalid argument, failed precondition, permission denied, out of range, unimplemented: a retry cannot succeed. */
const PERMANENT_CODES = [3, 7, 9, 11, 12];
/** Messages of etcd after which the client must authenticate again, as in the official client. */
const TOKEN_ERRORS = [
  'etcdserver: invalid auth token',
  'etcdserver: revision of auth store is old',
  'etcdserver: user name is empty',
];

/** Node's error codes for connections that were never established, so that nothing was sent. */
const CONNECT_ERROR_CODES = ['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH'];

/** Time limit of one attempt. MIN_ATTEMPT_MS also gives the last attempt enough time to tell a slow server from a dead one. */
const ATTEMPT_TIMEOUT_MS = 1000;
const MIN_ATTEMPT_MS = 100;
const TIMEOUT_MS = 10_000;

interface EtcdCall {
  /** The purpose of the request, for messages. */
  description: string;
  path: string;
  body: object;
}

/** A call with a single answer. */
interface UnaryCall<T> extends EtcdCall {
  /** Parses the answer. Throws if its shape is wrong; the outcome of the attempt is then unknown, as without an answer. */
  parse(answer: unknown): T;
  /** True if the call may be repeated after an attempt with an unknown outcome. */
  isIdempotent: boolean;
  timeoutMs?: number | undefined;
}

/** An error response of etcd. */
class GatewayError extends Error {
  constructor(
    readonly code: number,
    message: string,
  ) {
    super(message);
  }

  /** True if etcd refuses the token of the request. It has then done nothing else. */
  get isAboutToken(): boolean {
    return this.code === UNAUTHENTICATED || TOKEN_ERRORS.includes(this.message);
  }
}

/**
 * Invariant: all requests go to the server `current` until it fails, then to the next one. So a client rarely gets answers of a server that
 * lags behind, and a dead server costs one attempt.
 */
export class EtcdHttpClient {
  private readonly servers: string[];
  private readonly user: { name: string; password: string } | undefined;
  private token: string | undefined;
  private current = 0;

  /** `urls` look like `http://user:password@host:2379`. The first user found is used for all servers. TW_DHT_BAD_ETCD_URL. */
  constructor(
    urls: string[],
    /** Time limit for one answer of a server, ms. */
    private readonly attemptTimeoutMs = ATTEMPT_TIMEOUT_MS,
  ) {
    const parsed = urls.map(parseUrl);
    const withUser = parsed.find(({ username }) => username !== '');
    this.user = withUser && {
      name: decodeURIComponent(withUser.username),
      password: decodeURIComponent(withUser.password),
    };
    this.servers = parsed.map(({ origin }) => origin);
  }

  /** The server addresses, for messages. */
  get endpoints(): string {
    return this.servers.join(', ');
  }

  /** Makes a call, with a time limit for each attempt, at one server after another until `timeoutMs` has passed. */
  async post<T>({ isIdempotent, timeoutMs = TIMEOUT_MS, parse, ...call }: UnaryCall<T>): Promise<T> {
    const { description } = call;
    const deadline = performance.now() + timeoutMs;
    for (let tries = 0; ; tries++) {
      const server = this.current;
      const remaining = Math.ceil(deadline - performance.now());
      const timeout = Math.min(this.attemptTimeoutMs, Math.max(remaining, MIN_ATTEMPT_MS));
      try {
        return parse(await json(await this.request(server, call, AbortSignal.timeout(timeout))));
      } catch (error) {
        // etcd refused the call.
        if (error instanceof TilewrightError) throw error;
        this.failOver(server, error);
        if (!isIdempotent && !wasNotSent(error))
          throw outcomeUnknown.because(error, description, this.endpoints, detailOf(error));
        if (performance.now() >= deadline)
          throw coordinationUnavailable.because(error, description, this.endpoints, detailOf(error));
      }
      if (tries % this.servers.length === this.servers.length - 1) await backOff(tries / this.servers.length);
    }
  }

  /** Index of the server that requests are sent to. */
  get server(): number {
    return this.current;
  }

  /** Sends later requests to the next server, unless another call has done so already or `error` only requires a new token. */
  failOver(server: number, error: unknown): void {
    if (this.needsToken(error)) return;
    if (this.current === server) this.current = (server + 1) % this.servers.length;
  }

  /** Makes the next request authenticate again. */
  dropToken(): void {
    this.token = undefined;
  }

  /**
   * Yields the lines of a call with an endless answer, however long the server is silent. Throws if the connection breaks or `signal` is
   * aborted; TW_DHT_COORDINATION_REFUSED if etcd refuses the call.
   */
  async *stream<T>(server: number, call: EtcdCall, signal: AbortSignal): AsyncGenerator<T> {
    const decoder = new TextDecoder();
    let rest = '';
    for await (const chunk of await this.request(server, call, signal)) {
      rest += decoder.decode(chunk as Buffer, { stream: true });
      const lines = rest.split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) yield JSON.parse(line) as T;
    }
  }

  private async request(server: number, call: EtcdCall, signal: AbortSignal): Promise<IncomingMessage> {
    if (this.user && this.token === undefined)
      this.token = await this.authenticate(server, call.description, this.user, signal);
    return this.send(server, call, signal);
  }

  private async authenticate(
    server: number,
    description: string,
    body: object,
    signal: AbortSignal,
  ): Promise<string> {
    const response = await this.send(server, { description, path: 'auth/authenticate', body }, signal);
    return parseToken(await json(response));
  }

  private async send(
    server: number,
    { description, path, body }: EtcdCall,
    signal: AbortSignal,
  ): Promise<IncomingMessage> {
    const { token } = this;
    const response = await postJson(`${this.servers[server]}/v3/${path}`, body, token, signal);
    const { statusCode = 0 } = response;
    if (statusCode >= 200 && statusCode < 300) return response;
    const error = gatewayError(statusCode, await text(response));
    if (!this.needsToken(error)) throw this.permanentError(error, description) ?? error;
    // Tokens expire after some minutes, when a server restarts, and (JWT) when any user or role changes.
    if (this.token === token) this.token = undefined;
    throw error;
  }

  /** True if the same call can succeed with a new token: etcd refused the old one and did nothing else. */
  private needsToken(error: unknown): boolean {
    return this.user !== undefined && error instanceof GatewayError && error.isAboutToken;
  }

  /** The error for the caller if a retry cannot succeed. */
  private permanentError(error: GatewayError, what: string): TilewrightError | undefined {
    if (error.code === NOT_FOUND && error.message.includes('lease')) return leaseGone.because(error, what);
    if (error.code === EXHAUSTED && error.message.includes('space exceeded'))
      return coordinationFull.because(error, this.endpoints);
    if (PERMANENT_CODES.includes(error.code) || error.isAboutToken)
      return coordinationRefused.because(error, what, this.endpoints, error.message);
    return undefined;
  }
}

/** Uses node:http because `fetch` ends an answer that is silent for five minutes, as the answer of a quiet watch is. */
function postJson(
  url: string,
  body: object,
  token: string | undefined,
  signal: AbortSignal,
): Promise<IncomingMessage> {
  const request = url.startsWith('https:') ? requestHttps : requestHttp;
  const content = Buffer.from(JSON.stringify(body));
  const headers = {
    'content-type': 'application/json',
    'content-length': content.length,
    ...(token !== undefined && { authorization: token }),
  };
  return new Promise((resolve, reject) => {
    const sent = request(url, { method: 'POST', headers, signal }, resolve);
    // After the answer has begun, an error also ends the answer, and its reader gets the error.
    sent.on('error', reject).end(content);
  });
}

function parseUrl(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !['http:', 'https:'].includes(url.protocol)) throw badEtcdUrl(text);
  return url;
}

interface ErrorAnswer {
  code?: number;
  message?: string;
}

/** Parses an error of the gateway. A body that is not JSON comes from a proxy or from another server on that port. */
function gatewayError(status: number, text: string): GatewayError {
  try {
    const answer = JSON.parse(text) as ErrorAnswer & {
      error?: string | { grpc_code?: number; message?: string };
    };
    // Streaming calls wrap the error.
    const { error } = answer;
    const { code, message }: ErrorAnswer =
      typeof error === 'object' ? { ...error, code: error.grpc_code } : answer;
    return new GatewayError(code ?? 0, message ?? text);
  } catch {
    const refused = status === 404 ? 12 : 0;
    return new GatewayError(refused, `HTTP ${status} ${text.slice(0, 200)}`);
  }
}

/** True if an attempt that failed with `error` certainly made no change. */
function wasNotSent(error: unknown): boolean {
  if (error instanceof GatewayError) return error.isAboutToken;
  const code = error instanceof Error && (error as NodeJS.ErrnoException).code;
  return typeof code === 'string' && CONNECT_ERROR_CODES.includes(code);
}

/** The message of an error of node:http. An error for several addresses of one host has no message of its own. */
function detailOf(error: unknown): string {
  if (error instanceof AggregateError) return error.errors.map(messageOf).join(', ');
  return messageOf(error instanceof Error && error.cause ? error.cause : error);
}
