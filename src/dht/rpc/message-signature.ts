/**
 * Authentication of messages between nodes: an HMAC-SHA256 with the shared secret over the method, the path, the time and the body.
 * The secret itself is never sent.
 */
import { createHash, createHmac, timingSafeEqual } from 'node:crypto';
import { badSignature, clockSkew } from '../errors.js';

/** Maximum difference of two clocks. An eavesdropper can replay a message for as long. */
export const MAX_CLOCK_SKEW_MS = 60_000;

export interface SignedMessage {
  method: string;
  path: string;
  body: Uint8Array;
}

/** The value of the `authorization` header. */
export function sign(secret: string, message: SignedMessage, now = Date.now()): string {
  return `Tilewright ${now}:${digestOf(secret, message, now)}`;
}

/** Checks the `authorization` header of a message. Throws TW_DHT_FOREIGN_NODE, TW_DHT_CLOCK_APART. */
export function verifySignature(
  secret: string,
  message: SignedMessage,
  header: string | undefined,
  now = Date.now(),
): void {
  const [, time, digest] = /^Tilewright (\d{1,15}):([0-9a-f]{64})$/.exec(header ?? '') ?? [];
  if (time === undefined || digest === undefined)
    throw badSignature('a message between nodes has no signature');
  const expected = digestOf(secret, message, Number(time));
  if (!timingSafeEqual(Buffer.from(digest, 'hex'), Buffer.from(expected, 'hex')))
    throw badSignature('the message is signed with another secret');
  const skewMs = Math.abs(now - Number(time));
  if (skewMs > MAX_CLOCK_SKEW_MS) throw clockSkew(Math.round(skewMs / 1000));
}

function digestOf(secret: string, { method, path, body }: SignedMessage, time: number): string {
  const content = createHash('sha256').update(body).digest('hex');
  return createHmac('sha256', secret).update(`${method}\n${path}\n${time}\n${content}`).digest('hex');
}
