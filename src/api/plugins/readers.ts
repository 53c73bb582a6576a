/** Readers that take an answer slowly or not at all: an answer makes progress or ends, and long answers take bounded memory. */
import { Readable } from 'node:stream';
import type { FastifyInstance, FastifyReply } from 'fastify';
import { Semaphore } from '../../async/index.js';
import { noBody, onDisconnect } from '../answers.js';
import { clientGone, serverBusy } from '../errors.js';

/** While bytes wait for its reader, an answer must deliver at least MIN_BYTES_PER_WINDOW in each window. */
const WINDOW_MS = 60_000;
const MIN_BYTES_PER_WINDOW = 64_000;
/** Progress shows only between two writes to a socket, so answers are written in pieces. */
const PIECE_BYTES = 1 << 16;

/** Shorter answers take no part in the limits of memory: the number of connections limits them. */
const LONG_ANSWER_BYTES = 1 << 20;
/** Long answers of all clients that are made or wait for their readers. */
const MAX_BYTES = 2 ** 27;
/** Half of it for each client, so that one does not keep the others from long answers. */
const MAX_SHARE_OF_CLIENT = 0.5;
/** How long a long answer waits for memory. */
const WAIT_MS = 30_000;
const RETRY_AFTER_SECONDS = 5;

declare module 'fastify' {
  interface FastifyReply {
    /**
     * Waits until there is memory for an answer of `bytes` bytes, and takes it until the answer has ended. Call this before the answer is
     * made. Throws TW_API_BUSY if other answers keep the memory for too long.
     */
    reserveMemory(bytes: number): Promise<void>;
  }
}

/** Call this after the hooks that change an answer, because it counts the bytes that are sent. */
export function registerReaders(
  server: FastifyInstance,
  { window = WINDOW_MS, least = MIN_BYTES_PER_WINDOW, memory = MAX_BYTES, wait = WAIT_MS } = {},
): void {
  const answers = new AnswerMemory(memory, wait);
  server.decorateReply('reserveMemory', function reserveMemory(this: FastifyReply, bytes: number) {
    return answers.reserve(this, bytes);
  });
  server.addHook('onSend', async (request, reply, payload) => {
    answers.noteMade(reply);
    if (payload === null || payload === undefined) return payload;
    endWhenUnread(reply, window, least);
    if (payload instanceof Readable) {
      if (request.method !== 'HEAD') return payload;
      payload.destroy();
      return noBody();
    }
    const content = payload as string | Buffer;
    if (Buffer.byteLength(content) <= PIECE_BYTES || request.method === 'HEAD') return payload;
    const bytes = typeof content === 'string' ? Buffer.from(content) : content;
    if (!request.routeOptions.config.internal) await answers.reserve(reply, bytes.length, true);
    reply.header('content-length', bytes.length);
    return Readable.from(piecesOf(bytes), { objectMode: false });
  });
}

function* piecesOf(bytes: Buffer): Generator<Buffer> {
  for (let at = 0; at < bytes.length; at += PIECE_BYTES) yield bytes.subarray(at, at + PIECE_BYTES);
}

interface Client {
  memory: Semaphore;
  answers: number;
}

interface Reservation {
  /** True when the answer is made, and when its client has it or has gone; then the memory is free. */
  isMade: boolean;
  isGone: boolean;
  releases: (() => void)[];
}

/** The memory of long answers, in all and by client. One answer fits, however long it is. */
class AnswerMemory {
  private readonly memory: Semaphore;
  private readonly clients = new Map<string, Client>();
  private readonly reserved = new WeakMap<FastifyReply, Reservation>();

  constructor(
    private readonly bytes: number,
    private readonly waitMs: number,
  ) {
    this.memory = new Semaphore(bytes);
  }

  async reserve(reply: FastifyReply, bytes: number, isMade = false): Promise<void> {
    if (bytes < LONG_ANSWER_BYTES || this.reserved.has(reply)) return;
    const { ip } = reply.request;
    const client = this.clients.get(ip) ?? {
      memory: new Semaphore(this.bytes * MAX_SHARE_OF_CLIENT),
      answers: 0,
    };
    this.clients.set(ip, client);
    client.answers++;
    const reservation: Reservation = {
      isMade,
      isGone: false,
      releases: [
        () => {
          if (--client.answers === 0) this.clients.delete(ip);
        },
      ],
    };
    this.reserved.set(reply, reservation);
    const stop = new AbortController();
    onDisconnect(reply, () => {
      reservation.isGone = true;
      stop.abort(clientGone());
      releaseAfterEnd(reservation);
    });
    // Not AbortSignal.timeout: as a source of AbortSignal.any, it may be collected before it fires.
    const timer = setTimeout(() => stop.abort(serverBusy('answers')), this.waitMs);
    try {
      for (const memory of [client.memory, this.memory])
        reservation.releases.push(await memory.acquire(stop.signal, bytes));
    } catch (error) {
      reply.header('retry-after', RETRY_AFTER_SECONDS);
      throw error;
    } finally {
      clearTimeout(timer);
      // The answer may have ended while a permit was on its way.
      releaseAfterEnd(reservation);
    }
  }

  /** Call this when the answer is made, or refused: an answer is made to its end even if its client has gone. */
  noteMade(reply: FastifyReply): void {
    const reservation = this.reserved.get(reply);
    if (!reservation) return;
    reservation.isMade = true;
    releaseAfterEnd(reservation);
  }
}

function releaseAfterEnd({ isMade, isGone, releases }: Reservation): void {
  if (isMade && isGone) for (const release of releases.splice(0)) release();
}

/** Closes the connection if bytes have waited for a whole window and the reader has taken too few. */
function endWhenUnread({ raw, log, request }: FastifyReply, window: number, least: number): void {
  const { socket } = request.raw;
  const taken = () => socket.bytesWritten - socket.writableLength;
  let before = taken();
  let hasWaited = false;
  const timer = setInterval(() => {
    const now = taken();
    const waits = raw.writableLength + socket.writableLength > 0;
    if (waits && hasWaited && now - before < least) {
      clearInterval(timer);
      log.info(`the reader took less than ${least} bytes in ${window / 1e3} s, so the answer ended`);
      socket.resetAndDestroy();
    }
    hasWaited = waits;
    before = now;
  }, window).unref();
  raw.once('close', () => clearInterval(timer));
}
