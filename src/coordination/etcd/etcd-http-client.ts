/**
 * Requests to the JSON gateway of etcd's servers (grpc-gateway: every call of the v3 API is a POST; 64-bit numbers are strings,
 * bytes are base64, default values are left out).
 */
import { type IncomingMessage, request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';
import { json, text } from 'node:stream/consumers';
import { backOff } from '../../async/index.js';
import { messageOf, TilewrightError } from '../../errors.js';
import {
  badEtcdUrl,
  coordinationFull,
  coordinationRefused,
  coordinationUnavailable,
  leaseGone,
  outcomeUnknown,
} from '../errors.js';
import { parseToken } from './etcd-responses.js';

/** gRPC status codes that the gateway passes on in `code`. */
const NOT_FOUND = 5;
const EXHAUSTED = 8;
const UNAUTHENTICATED = 16;
/** Invalid argument, out of range, failed precondition, permission denied, unimplemented: no use in trying again. */
const PERMANENT_CODES = [3, 7, 9, 11, 12];
/** etcd's messages that call for a new token; the official client authenticates again on the same ones. */
const TOKEN_ERRORS = [
  'etcdserver: invalid auth token',
  'etcdserver: revision of auth store is old',
  'etcdserver: user name is empty',
];

/** Node's codes of connections that were never made, so that nothing was sent. */
const CONNECT_ERROR_CODES = ['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH'];

/** How long one attempt may take, ms: also the last one gets time enough to tell a server that is dead from one that is slow. */
const ATTEMPT_TIMEOUT_MS = 1000;
const MIN_ATTEMPT_MS = 100;
const TIMEOUT_MS = 10_000;

export interface EtcdCall {
  /** What the request is about, for messages. */
  description: string;
  path: string;
  body: object;
}

/** A call with one answer. */
interface UnaryCall<T> extends EtcdCall {
  /** Reads the answer, and throws if it has a wrong shape: then the outcome of the attempt is unknown, as without an answer. */
  parse(answer: unknown): T;
  /** Whether it may be sent again after an attempt whose outcome is unknown. */
  isIdempotent: boolean;
  timeoutMs?: number | undefined;
}

/** An answer of etcd that is an error. */
class GatewayError extends Error {
  constructor(
    readonly code: number,
    message: string,
  ) {
    super(message);
  }

  /** Whether etcd refuses the token of the request. It has done nothing then. */
  get isAboutToken(): boolean {
    return this.code === UNAUTHENTICATED || TOKEN_ERRORS.includes(this.message);
  }
}

/**
 * Invariant: requests go to one server, `current`, until it fails; then to the next. So those of one client are seldom answered by a
 * server that is behind, and a dead server costs one attempt.
 */
export class EtcdHttpClient {
  private readonly servers: string[];
  private readonly user: { name: string; password: string } | undefined;
  private token: string | undefined;
  private current = 0;

  /** `urls` like `http://user:password@host:2379`; the first one that has a user tells it for all. TW_DHT_BAD_ETCD_URL. */
  constructor(
    urls: string[],
    /** How long a server has to answer, ms. */
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

  /** The servers, for messages. */
  get endpoints(): string {
    return this.servers.join(', ');
  }

  /** One call, with time-outs of a second, at one server after another until its patience ends. */
  async post<T>({ isIdempotent, timeoutMs = TIMEOUT_MS, parse, ...call }: UnaryCall<T>): Promise<T> {
    const { description } = call;
    const deadline = performance.now() + timeoutMs;
    for (let tries = 0; ; tries++) {
      const server = this.current;
      const left = Math.ceil(deadline - performance.now());
      const timeout = Math.min(this.attemptTimeoutMs, Math.max(left, MIN_ATTEMPT_MS));
      try {
        return parse(await json(await this.request(server, call, AbortSignal.timeout(timeout))));
      } catch (error) {
        // etcd has refused it.
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

  /** Where requests go at the moment. */
  get server(): number {
    return this.current;
  }

  /** Sends later requests to the next server, unless another call has done so already or `error` only calls for a new token. */
  failOver(server: number, error: unknown): void {
    if (this.needsToken(error)) return;
    if (this.current === server) this.current = (server + 1) % this.servers.length;
  }

  /** The next request authenticates again. */
  dropToken(): void {
    this.token = undefined;
  }

  /**
   * Lines of a call whose answer does not end, however long the server is silent. Throws if the connection breaks or `signal` is aborted;
   * TW_DHT_COORDINATION_REFUSED if etcd refuses the call.
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
    // Tokens end after some minutes, when a server starts again, and (JWT) when any user or role changes.
    if (this.token === token) this.token = undefined;
    throw error;
  }

  /** Whether the same call will do with a new token: etcd has refused the old one and done nothing. */
  private needsToken(error: unknown): boolean {
    return this.user !== undefined && error instanceof GatewayError && error.isAboutToken;
  }

  /** The error for the caller, if it is no use to try again. */
  private permanentError(error: GatewayError, what: string): TilewrightError | undefined {
    if (error.code === NOT_FOUND && error.message.includes('lease')) return leaseGone.because(error, what);
    if (error.code === EXHAUSTED && error.message.includes('space exceeded'))
      return coordinationFull.because(error, this.endpoints);
    if (PERMANENT_CODES.includes(error.code) || error.isAboutToken)
      return coordinationRefused.because(error, what, this.endpoints, error.message);
    return undefined;
  }
}

/** With node:http, because `fetch` ends an answer that is silent for five minutes, as those of quiet watches are. */
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
    // An error after the answer has begun also ends the answer, whose reader gets it.
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

/** An answer that is not JSON of the gateway comes from something in between: a proxy, or another server on that port. */
function gatewayError(status: number, text: string): GatewayError {
  try {
    const answer = JSON.parse(text) as ErrorAnswer & {
      error?: string | { grpc_code?: number; message?: string };
    };
    // Calls with a stream of answers wrap the error.
    const { error } = answer;
    const { code, message }: ErrorAnswer =
      typeof error === 'object' ? { ...error, code: error.grpc_code } : answer;
    return new GatewayError(code ?? 0, message ?? text);
  } catch {
    const refused = status === 404 ? 12 : 0;
    return new GatewayError(refused, `HTTP ${status} ${text.slice(0, 200)}`);
  }
}

/** Whether a change was surely not made by an attempt that failed so. */
function wasNotSent(error: unknown): boolean {
  if (error instanceof GatewayError) return error.isAboutToken;
  const code = error instanceof Error && (error as NodeJS.ErrnoException).code;
  return typeof code === 'string' && CONNECT_ERROR_CODES.includes(code);
}

/** The message of an error of node:http. An error for several addresses of a host has no message of its own. */
function detailOf(error: unknown): string {
  if (error instanceof AggregateError) return error.errors.map(messageOf).join(', ');
  return messageOf(error instanceof Error && error.cause ? error.cause : error);
}
