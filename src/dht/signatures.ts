/**
 * Signatures of messages between nodes. They cover only the head of a message, which names the length and a digest of the body, so that a
 * node reads no byte of a body that a stranger sends.
 */
import { createHash, createHmac, timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { badSignature, clockSkew, damagedMessage, otherReceiver } from './errors.js';

/** Maximum difference of two clocks. An eavesdropper can replay a message to the same node for as long. */
export const MAX_CLOCK_SKEW_MS = 60_000;

/** The id of the node for which a message is meant. */
const RECEIVER_HEADER = 'tilewright-receiver';
/** The SHA-256 of the body (RFC 9530). */
const DIGEST_HEADER = 'content-digest';

interface Message {
  method: string;
  path: string;
  body?: Uint8Array;
}

interface MessageHead {
  method?: string;
  url?: string;
  headers: IncomingHttpHeaders;
}

type SignedHead = Record<'method' | 'path' | 'receiver' | 'time' | 'length' | 'digest', string | number>;

export class Signatures {
  /**
   * `self`: the id of this node. `secrets`: the first signs; messages that are signed with any of them are accepted, so that a cluster can
   * change its secret node by node.
   */
  constructor(
    private readonly self: string,
    private readonly secrets: readonly string[],
  ) {}

  /** The headers of a message to the node `receiver`: an HMAC-SHA256 with the shared secret, which itself is never sent. */
  headers(receiver: string, { method, path, body = new Uint8Array() }: Message, time = Date.now()) {
    const [length, digest] = [body.length, digestOf(body)];
    const code = codeOf(this.secrets[0]!, { method, path, receiver, time, length, digest });
    return {
      authorization: `Tilewright ${time}:${code}`,
      [RECEIVER_HEADER]: receiver,
      [DIGEST_HEADER]: digest,
      ...(length > 0 && { 'content-length': length }),
    };
  }

  /**
   * Checks the head of a message; `readSignedBody` checks its body. Throws TW_DHT_FOREIGN_NODE, TW_DHT_CLOCK_APART, and
   * TW_DHT_OTHER_RECEIVER if the message is meant for another node, such as a former one at this address.
   */
  verify({ method = '', url: path = '', headers }: MessageHead, now = Date.now()): void {
    const [, time, code] = /^Tilewright (\d{1,15}):([0-9a-f]{64})$/.exec(headers.authorization ?? '') ?? [];
    const { [RECEIVER_HEADER]: receiver, [DIGEST_HEADER]: digest } = headers;
    if (
      time === undefined ||
      code === undefined ||
      typeof receiver !== 'string' ||
      typeof digest !== 'string'
    )
      throw badSignature('a message between nodes has no signature');
    if (headers['transfer-encoding'] !== undefined)
      throw badSignature('a message between nodes does not state its length');
    const length = headers['content-length'] ?? 0;
    const sentCode = Buffer.from(code, 'hex');
    const head = { method, path, receiver, time, length, digest };
    const isKnown = (secret: string) => timingSafeEqual(sentCode, Buffer.from(codeOf(secret, head), 'hex'));
    if (!this.secrets.some(isKnown)) throw badSignature('the message is signed with another secret');
    const skewMs = Math.abs(now - Number(time));
    if (skewMs > MAX_CLOCK_SKEW_MS) throw clockSkew(Math.round(skewMs / 1000));
    if (receiver !== this.self) throw otherReceiver(receiver, this.self);
  }
}

function codeOf(secret: string, { method, path, receiver, time, length, digest }: SignedHead): string {
  const head = [method, path, receiver, time, length, digest].join('\n');
  return createHmac('sha256', secret).update(head).digest('hex');
}

const digestField = (digest: Buffer) => `sha-256=:${digest.toString('base64')}:`;
const digestOf = (body: Uint8Array) => digestField(createHash('sha256').update(body).digest());

/** Reads the body of a message whose head is verified. Throws TW_DHT_DAMAGED_MESSAGE if it is not the one that was signed. */
export async function readSignedBody(
  headers: IncomingHttpHeaders,
  chunks: AsyncIterable<Buffer>,
): Promise<Buffer> {
  // The parser of HTTP delivers no more bytes than the length in the head, which is signed.
  const body = Buffer.allocUnsafe(Number(headers['content-length'] ?? 0));
  const hash = createHash('sha256');
  let length = 0;
  for await (const chunk of chunks) {
    length += chunk.copy(body, length);
    hash.update(chunk);
  }
  if (length < body.length || digestField(hash.digest()) !== headers[DIGEST_HEADER]) throw damagedMessage();
  return body;
}
