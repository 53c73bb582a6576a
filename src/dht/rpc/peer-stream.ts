/** Streamed answers of other nodes: JSON lines, each with its checksum. */
import { type ClientRequest, type IncomingMessage, request } from 'node:http';
import { crc32 } from 'node:zlib';
import type { Check } from '../../utils/json-schema.js';
import { peerFailed } from '../errors.js';
import type { Peer, PeerClient } from './peer-rpc-client.js';

/** The media type of a streamed answer. */
export const NDJSON_TYPE = 'application/x-ndjson';

export interface StreamRequest {
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
  const { body, headers } = peers.signedRequest(path, message);
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
