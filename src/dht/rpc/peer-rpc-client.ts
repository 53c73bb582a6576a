/** Requests to other nodes of the cluster. */
import { Agent, request } from 'node:http';
import { crc32 } from 'node:zlib';
import {
  ERROR_DOCUMENT_SCHEMA,
  type ErrorDocument,
  fromErrorDocument,
  messageOf,
  type TilewrightError,
} from '../../errors.js';
import { type Check, messageCheck } from '../../utils/json-schema.js';
import { parseJsonOr } from '../../utils/json-text.js';
import { peerFailed } from '../errors.js';
import { sign } from './message-signature.js';
import { ClockOffsets, TIME_HEADER } from './rpc-clock-offsets.js';
import { limitConnectTime } from './rpc-connect-timeout.js';

/** The header with the CRC-32 of a body, decimal. */
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
    private readonly secret: string,
    onWarning: (error: Error) => void = () => {},
  ) {
    this.clocks = new ClockOffsets(onWarning);
  }

  /**
   * Sends a message to another node and returns its answer. Throws TW_DHT_PEER if the node cannot be reached, does not answer within
   * `timeoutMs` (including the wait for a free socket) or answers with an error, or if the answer is damaged or `check` rejects it.
   * If the node answers with an error document, that error is the cause.
   */
  call<T>(peer: Peer, path: string, message: unknown, timeoutMs: number, check: Check): Promise<T> {
    const { id, url } = peer;
    let sentAt = performance.now();
    const { body, headers } = this.signedRequest(path, message);
    return new Promise((resolve, reject) => {
      let hasFailed = false;
      const fail = (detail: string, cause?: TilewrightError) => {
        if (hasFailed) return;
        hasFailed = true;
        clearTimeout(answering);
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

  /** The body and headers of a POST request to `path`, with a checksum and a signature. */
  signedRequest(path: string, message: unknown) {
    const body = Buffer.from(JSON.stringify(message));
    const headers = {
      'content-type': MESSAGE_TYPE,
      'content-length': body.length,
      [CHECKSUM_HEADER]: crc32(body),
      authorization: sign(this.secret, { method: 'POST', path, body }),
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
