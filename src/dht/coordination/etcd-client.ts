/**
 * Requests to the JSON gateway of etcd's servers (grpc-gateway: every call of the v3 API is a POST; 64-bit numbers are strings,
 * bytes are base64, default values are left out).
 */
import { messageOf } from '../../errors.js';
import {
  badEtcdUrl,
  coordinationFull,
  coordinationRefused,
  coordinationUnavailable,
  leaseGone,
  outcomeUnknown,
} from '../errors.js';
import { backOff } from './settle.js';

/** gRPC status codes that the gateway passes on in `code`. */
const NOT_FOUND = 5;
const EXHAUSTED = 8;
const UNAUTHENTICATED = 16;
/** Invalid argument, out of range, failed precondition, permission denied, unimplemented: no use in trying again. */
const REFUSALS = [3, 7, 9, 11, 12];

/** Node's codes of connections that were never made, so that nothing was sent. */
const NOT_SENT = [
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
];

/** How long one attempt may take, ms: also the last one gets time enough to tell a server that is dead from one that is slow. */
const ATTEMPT_TIMEOUT = 1000;
const SHORTEST_ATTEMPT = 100;
const PATIENCE = 10_000;

export interface Call {
  /** What the request is about, for messages. */
  what: string;
  path: string;
  body: object;
  /** Whether it may be sent again after an attempt whose outcome is unknown. */
  repeatable: boolean;
  patience?: number | undefined;
}

/** An answer of etcd that is an error. */
class GatewayError extends Error {
  constructor(
    readonly code: number,
    message: string,
  ) {
    super(message);
  }
}

/**
 * Invariant: requests go to one server, `current`, until it fails; then to the next. So those of one client are seldom answered by a
 * server that is behind, and a dead server costs one attempt.
 */
export class EtcdClient {
  private readonly servers: string[];
  private readonly user: { name: string; password: string } | undefined;
  private token: string | undefined;
  private current = 0;

  /** `urls` like `http://user:password@host:2379`; the first one that has a user tells it for all. TW_DHT_BAD_ETCD_URL. */
  constructor(
    urls: string[],
    /** How long a server has to answer, ms. */
    private readonly attempt = ATTEMPT_TIMEOUT,
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
  get where(): string {
    return this.servers.join(', ');
  }

  /** One call, with time-outs of a second, at one server after another until its patience ends. */
  async post<T>({ what, path, body, repeatable, patience = PATIENCE }: Call): Promise<T> {
    const deadline = performance.now() + patience;
    for (let tries = 0; ; tries++) {
      const server = this.current;
      const left = Math.ceil(deadline - performance.now());
      const timeout = Math.min(this.attempt, Math.max(left, SHORTEST_ATTEMPT));
      try {
        const response = await this.fetch(server, path, body, AbortSignal.timeout(timeout));
        return (await response.json()) as T;
      } catch (error) {
        this.throwRefusal(error, what);
        this.avoid(server);
        if (!repeatable && !wasNotMade(error))
          throw outcomeUnknown.because(error, what, this.where, detailOf(error));
        if (performance.now() >= deadline)
          throw coordinationUnavailable.because(error, what, this.where, detailOf(error));
      }
      if (tries % this.servers.length === this.servers.length - 1) await backOff(tries / this.servers.length);
    }
  }

  /** Where requests go at the moment. */
  get server(): number {
    return this.current;
  }

  /** The next server from now on, if another call has not moved on already. */
  avoid(server: number): void {
    if (this.current === server) this.current = (server + 1) % this.servers.length;
  }

  /** Lines of a call whose answer does not end. An error where it breaks, or `signal` is aborted. */
  async *stream<T>(server: number, path: string, body: object, signal: AbortSignal): AsyncGenerator<T> {
    const response = await this.fetch(server, path, body, signal);
    const decoder = new TextDecoder();
    let text = '';
    for await (const chunk of response.body ?? []) {
      text += decoder.decode(chunk, { stream: true });
      const lines = text.split('\n');
      text = lines.pop() ?? '';
      for (const line of lines) yield JSON.parse(line) as T;
    }
  }

  private async fetch(server: number, path: string, body: object, signal: AbortSignal): Promise<Response> {
    if (this.user && this.token === undefined)
      this.token = await this.authenticate(server, this.user, signal);
    return this.send(server, path, body, signal);
  }

  private async authenticate(server: number, user: object, signal: AbortSignal): Promise<string> {
    const response = await this.send(server, 'auth/authenticate', user, signal);
    return ((await response.json()) as { token: string }).token;
  }

  private async send(server: number, path: string, body: object, signal: AbortSignal): Promise<Response> {
    const token = this.token;
    const response = await fetch(`${this.servers[server]}/v3/${path}`, {
      method: 'POST',
      body: JSON.stringify(body),
      headers: token === undefined ? {} : { authorization: token },
      signal,
    });
    if (response.ok) return response;
    const error = gatewayError(response.status, await response.text());
    // Tokens end after some minutes, and when a server starts again.
    if (error.code === UNAUTHENTICATED && this.token === token) this.token = undefined;
    throw error;
  }

  private throwRefusal(error: unknown, what: string): void {
    if (!(error instanceof GatewayError)) return;
    if (error.code === NOT_FOUND && error.message.includes('lease')) throw leaseGone.because(error, what);
    if (error.code === EXHAUSTED && error.message.includes('space exceeded'))
      throw coordinationFull.because(error, this.where);
    if (REFUSALS.includes(error.code) || (error.code === UNAUTHENTICATED && this.user === undefined))
      throw coordinationRefused.because(error, what, this.where, error.message);
  }
}

function parseUrl(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !['http:', 'https:'].includes(url.protocol)) throw badEtcdUrl(text);
  return url;
}

/** What is no JSON of the gateway is of something between: a proxy, or another server on that port. */
function gatewayError(status: number, text: string): GatewayError {
  try {
    const { code, message } = JSON.parse(text) as { code?: number; message?: string };
    return new GatewayError(code ?? 0, message ?? text);
  } catch {
    const refused = status === 404 ? 12 : 0;
    return new GatewayError(refused, `HTTP ${status} ${text.slice(0, 200)}`);
  }
}

/** Whether a change was surely not made by an attempt that failed so. */
function wasNotMade(error: unknown): boolean {
  if (error instanceof GatewayError) return error.code === UNAUTHENTICATED;
  const code = error instanceof Error && (error.cause as NodeJS.ErrnoException | undefined)?.code;
  return typeof code === 'string' && NOT_SENT.includes(code);
}

const detailOf = (error: unknown): string =>
  messageOf(error instanceof Error && error.cause ? error.cause : error);
