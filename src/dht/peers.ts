/** Requests to other nodes of the cluster, and their streamed answers: checksums, the clocks of the nodes, and a handshake. */
import { Agent, type ClientRequest, type IncomingMessage, request } from 'node:http';
import { crc32 } from 'node:zlib';
import {
  ERROR_DOCUMENT_SCHEMA,
  type ErrorDocument,
  fromErrorDocument,
  messageOf,
  TilewrightError,
} from '../errors.js';
import { type Check, messageCheck, objectOf } from '../utils/json-schema.js';
import { parseJsonOr } from '../utils/json-text.js';
import { clockOffsetWarning, peerFailed, peerRefused } from './errors.js';
import { MAX_CLOCK_SKEW_MS, type Signatures } from './signatures.js';

/** The header of an answer with the time of the answering node, ms since 1970. */
export const TIME_HEADER = 'tilewright-time';
/** The error of an estimate is at most half of the round trip, so longer ones are ignored. */
const MAX_ROUND_TRIP_MS = 2000;
const WARNING_OFFSET_MS = MAX_CLOCK_SKEW_MS / 4;
const WARNING_INTERVAL_MS = 10 * 60_000;

/** Estimates how far the clocks of other nodes differ from the clock of this node, from the times in their answers. */
class ClockOffsets {
  /** By node id; positive if the other clock is ahead. */
  readonly seconds = new Map<string, number>();
  private readonly warnedAt = new Map<string, number>();

  /** `onWarning` gets a TW_DHT_CLOCK_OFFSET error, for each node at most once in ten minutes. */
  constructor(private readonly onWarning: (error: Error) => void) {}

  /** Adds the time in an answer to a request that was sent at `sentAt` on the monotonic clock (`performance.now`). */
  observe(
    { id, url }: { id: string; url: string },
    time: string | string[] | undefined,
    sentAt: number,
  ): void {
    const roundTripMs = performance.now() - sentAt;
    if (typeof time !== 'string' || !/^\d{1,15}$/.test(time) || roundTripMs > MAX_ROUND_TRIP_MS) return;
    const offsetMs = Number(time) + roundTripMs / 2 - Date.now();
    this.seconds.set(id, offsetMs / 1000);
    if (Math.abs(offsetMs) < WARNING_OFFSET_MS) return;
    const now = performance.now();
    if (now - (this.warnedAt.get(id) ?? -Infinity) < WARNING_INTERVAL_MS) return;
    this.warnedAt.set(id, now);
    this.onWarning(
      clockOffsetWarning(id, url, Math.round(offsetMs / 1000), Math.round(MAX_CLOCK_SKEW_MS / 1000)),
    );
  }
}

/**
 * Destroys a request with `it cannot be reached` if its socket is not connected within `timeoutMs` after it starts to connect. The time
 * that the request waits for a free socket of a pool does not count.
 */
export function limitConnectTime(request: ClientRequest, timeoutMs: number): void {
  request.once('socket', (socket) => {
    if (!socket.connecting) return;
    const check = () => {
      if (socket.connecting) request.destroy(new Error('it cannot be reached'));
    };
    // If this process was busy, it notices an established connection only after the timers have run.
    const timer = setTimeout(() => setImmediate(check), timeoutMs);
    socket.once('connect', () => clearTimeout(timer));
    socket.once('close', () => clearTimeout(timer));
  });
}

/** The header with the CRC-32 of an answer, decimal. */
export const CHECKSUM_HEADER = 'tilewright-crc32';
/** The media type of messages between nodes. */
export const MESSAGE_TYPE = 'application/vnd.tilewright.node+json';

const CONNECT_TIMEOUT_MS = 300;
/** Limit per node; further requests wait for a free socket. */
const MAX_SOCKETS_PER_NODE = 64;
/** Valid answers are shorter. */
const MAX_RESPONSE_BYTES = 2 ** 28;

export interface Peer {
  id: string;
  url: string;
}

export class PeerClient {
  private readonly agent = new Agent({ keepAlive: true, maxSockets: MAX_SOCKETS_PER_NODE });
  private readonly failureCounts = new Map<string, number>();

  private readonly clocks: ClockOffsets;

  /** `onWarning` gets a TW_DHT_CLOCK_OFFSET error if the clock of another node differs too much. */
  constructor(
    private readonly signatures: Signatures,
    onWarning: (error: Error) => void = () => {},
  ) {
    this.clocks = new ClockOffsets(onWarning);
  }

  /**
   * Sends a message to another node and returns its answer. Throws TW_DHT_PEER if the node cannot be reached, does not answer within
   * `timeoutMs` (including the wait for a free socket) or answers with an error, or if the answer is damaged or `check` rejects it.
   * If the node answers with an error document, that error is the cause. Throws the reason of `signal`, and closes the connection.
   */
  call<T>(
    peer: Peer,
    path: string,
    message: unknown,
    timeoutMs: number,
    check: Check,
    signal?: AbortSignal,
  ): Promise<T> {
    const { id, url } = peer;
    signal?.throwIfAborted();
    let sentAt = performance.now();
    const { body, headers } = this.signedRequest(id, path, message);
    return new Promise((resolve, reject) => {
      let hasFailed = false;
      const fail = (detail: string, cause?: TilewrightError) => {
        if (hasFailed) return;
        hasFailed = true;
        clearTimeout(answering);
        signal?.removeEventListener('abort', abort);
        sent.destroy();
        this.failureCounts.set(id, (this.failureCounts.get(id) ?? 0) + 1);
        reject(peerFailed.because(cause, id, url, detail));
      };
      const sent = request(new URL(path, url), { method: 'POST', agent: this.agent, headers }, (answer) => {
        this.clocks.observe(peer, answer.headers[TIME_HEADER], sentAt);
        const chunks: Buffer[] = [];
        let bytes = 0;
        answer.on('data', (chunk: Buffer) => {
          chunks.push(chunk);
          bytes += chunk.length;
          if (bytes > MAX_RESPONSE_BYTES) fail('its answer is too long');
        });
        answer.on('error', (error) => fail(error.message));
        answer.on('end', () => {
          clearTimeout(answering);
          signal?.removeEventListener('abort', abort);
          const content = Buffer.concat(chunks);
          const { statusCode = 0 } = answer;
          if (statusCode !== 200)
            fail(`${statusCode} ${content.toString('utf8', 0, 500)}`, parseProblem(statusCode, content));
          else if (answer.headers[CHECKSUM_HEADER] !== String(crc32(content))) fail('its answer is damaged');
          else
            try {
              resolve(parseResponse(content, check));
            } catch (error) {
              fail(messageOf(error));
            }
        });
      });
      const abort = () => {
        hasFailed = true;
        clearTimeout(answering);
        sent.destroy();
        reject(signal?.reason);
      };
      signal?.addEventListener('abort', abort, { once: true });
      const answering = setTimeout(() => fail(`no answer within ${timeoutMs} ms`), timeoutMs);
      limitConnectTime(sent, CONNECT_TIMEOUT_MS);
      // The wait for a free socket is not part of the round trip.
      sent.once('socket', () => {
        sentAt = performance.now();
      });
      sent.on('error', (error) => fail(error.message));
      sent.end(body);
    });
  }

  /** The body and headers of a POST request to the node `receiver`. */
  signedRequest(receiver: string, path: string, message: unknown) {
    const body = Buffer.from(JSON.stringify(message));
    const headers = {
      'content-type': MESSAGE_TYPE,
      ...this.signatures.headers(receiver, { method: 'POST', path, body }),
    };
    return { body, headers };
  }

  /** How far the clocks of other nodes are ahead of the clock of this node, seconds, by node id. */
  get clockOffsets(): ReadonlyMap<string, number> {
    return this.clocks.seconds;
  }

  /** The number of failed requests by node id. */
  get failures(): ReadonlyMap<string, number> {
    return this.failureCounts;
  }

  close(): void {
    this.agent.destroy();
  }
}

function parseResponse<T>(bytes: Buffer, check: Check): T {
  const answer = parseJsonOr<T>(bytes.toString(), (cause) => new Error('its answer is not JSON', { cause }));
  const fault = check(answer);
  if (fault !== undefined) throw new Error(`its answer is invalid: ${fault}`);
  return answer;
}

const checkError = messageCheck(ERROR_DOCUMENT_SCHEMA);

/** The error in a problem document (RFC 9457); undefined if the body is not one. */
function parseProblem(status: number, bytes: Buffer): TilewrightError | undefined {
  try {
    const { code, detail } = Object(JSON.parse(bytes.toString()));
    const error: ErrorDocument = { code, status, message: detail };
    return checkError(error) === undefined ? fromErrorDocument(error) : undefined;
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    return undefined;
  }
}

/** The media type of a streamed answer: JSON lines, each with its checksum. */
export const NDJSON_TYPE = 'application/x-ndjson';

interface StreamRequest {
  peers: PeerClient;
  peer: Peer;
  path: string;
  message: unknown;
  /** Checks each line. */
  check: Check;
  /** Maximum time between two lines, ms. */
  idleTimeoutMs: number;
  /** Ends the request. */
  signal: AbortSignal;
}

/** Encodes a line of a streamed answer, for `streamLines`. */
export function encodeLine(value: unknown): string {
  const text = JSON.stringify(value);
  return `${crc32(text)} ${text}\n`;
}

/**
 * Yields the lines of an answer until it ends. Throws TW_DHT_PEER if the node does not answer, breaks off or is silent for too long, if a
 * line is damaged, or if `check` rejects it.
 */
export async function* streamLines<T>(streamRequest: StreamRequest): AsyncGenerator<T> {
  const { peers, peer, path, message, check, idleTimeoutMs, signal } = streamRequest;
  const fail = (detail: string) => peerFailed(peer.id, peer.url, detail);
  const { body, headers } = peers.signedRequest(peer.id, path, message);
  signal.throwIfAborted();
  const sent = request(new URL(path, peer.url), { method: 'POST', agent: false, headers, signal });
  const timer = setTimeout(
    () => sent.destroy(new Error(`it was silent for ${idleTimeoutMs} ms`)),
    idleTimeoutMs,
  );
  try {
    sent.end(body);
    const answer = await responseOf(sent);
    answer.setEncoding('utf8');
    let rest = '';
    for await (const text of answer as AsyncIterable<string>) {
      timer.refresh();
      const lines = (rest + text).split('\n');
      rest = lines.pop()!;
      if (answer.statusCode !== 200) throw fail(`${answer.statusCode} ${text.slice(0, 500)}`);
      for (const line of lines) {
        const [, sum, json] = /^(\d+) (.*)$/s.exec(line) ?? [];
        if (json === undefined || sum !== String(crc32(json))) throw fail('its answer is damaged');
        const value: unknown = JSON.parse(json);
        const fault = check(value);
        if (fault !== undefined) throw fail(`its answer is invalid: ${fault}`);
        yield value as T;
      }
    }
    if (rest !== '') throw fail(`${answer.statusCode} ${rest.slice(0, 500)}`);
  } catch (error) {
    signal.throwIfAborted();
    throw peerFailed.is(error) ? error : fail(error instanceof Error ? error.message : String(error));
  } finally {
    clearTimeout(timer);
    sent.destroy();
  }
}

function responseOf(sent: ClientRequest): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    sent.once('response', resolve);
    // An error after the answer has begun also ends the answer, and its reader gets the error.
    sent.on('error', reject);
  });
}

export const HANDSHAKE_PATH = '/cluster/internal/greeting';
const HANDSHAKE_TIMEOUT_MS = 1000;
const checkHandshake = messageCheck(objectOf({}));

/**
 * Throws TW_DHT_REFUSED if one of `others` refuses the messages of this node; later, a refusal would only show as answers without tiles.
 * A node that does not answer is ignored.
 */
export async function handshake(peers: PeerClient, others: readonly Peer[]): Promise<void> {
  await Promise.all(
    others.map(async (peer) => {
      try {
        await peers.call(peer, HANDSHAKE_PATH, {}, HANDSHAKE_TIMEOUT_MS, checkHandshake);
      } catch (error) {
        const { cause } = error as Error;
        if (!(cause instanceof TilewrightError) || cause.status !== 401) return;
        throw peerRefused.because(error, peer.id, peer.url, cause.message);
      }
    }),
  );
}
