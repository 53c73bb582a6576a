/** Requests to a node, over HTTP or in this process; their bodies, which are JSON, a file or a tar archive; and their answers. */
import { createReadStream, createWriteStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { type IncomingMessage, type OutgoingHttpHeaders, request as overHttp } from 'node:http';
import { request as overHttps } from 'node:https';
import { basename } from 'node:path';
import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { pipeline } from 'node:stream/promises';
import type { ReadableStream } from 'node:stream/web';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Pack } from 'tar-stream';
import { messageOf, TilewrightError } from '../errors.js';
import { answerBroken, badAnswer, fileUnreadable, unreachable } from './errors.js';

const READ_BYTES = 1 << 20;
const TAR_BLOCK_BYTES = 512;

/** A body that is streamed from disk: a file, or with side files a tar archive of all files under their own names. */
export class FileBody {
  private found: Promise<FileEntry[]> | undefined;

  constructor(
    readonly path: string,
    readonly sideFiles: readonly string[] = [],
    readonly signal?: AbortSignal,
  ) {}

  /** Name of the body. The archive of `a.tif` is `a.tif.tar`. */
  get name(): string {
    return basename(this.path) + (this.sideFiles.length > 0 ? '.tar' : '');
  }

  /** Throws TW_CLIENT_NO_FILE. */
  async bytes(): Promise<number> {
    const entries = await this.entries();
    if (this.sideFiles.length === 0) return entries[0]!.size;
    let total = 0;
    // The length of a header depends only on the name.
    for await (const chunk of tarOf(entries.map(({ name }) => ({ name, size: 0 })))) total += chunk.length;
    for (const { size } of entries) total += Math.ceil(size / TAR_BLOCK_BYTES) * TAR_BLOCK_BYTES;
    return total;
  }

  /** A stream of exactly `bytes()` bytes, even if a file grows. An unreadable file destroys the stream with TW_CLIENT_NO_FILE. */
  stream(): Readable {
    const chunks = async function* (body: FileBody) {
      const entries = await body.entries();
      yield* body.sideFiles.length === 0 ? contentOf(entries[0]!) : tarOf(entries);
    };
    return Readable.from(chunks(this), { objectMode: false });
  }

  /** The sizes are read once, because they are sent before the files. */
  private entries(): Promise<FileEntry[]> {
    this.found ??= Promise.all(
      [this.path, ...this.sideFiles].map(async (path) => {
        const { size } = await stat(path).catch((error) => {
          throw fileUnreadable.because(error, path, messageOf(error));
        });
        return { name: basename(path), size, path };
      }),
    );
    return this.found;
  }
}

interface TarEntry {
  name: string;
  size: number;
  /** An entry without a file is empty. */
  path?: string;
}

type FileEntry = Required<TarEntry>;

/** The first `size` bytes of a file. Throws TW_CLIENT_NO_FILE if the file cannot be read or is shorter. */
async function* contentOf({ path, size }: Omit<FileEntry, 'name'>): AsyncGenerator<Buffer> {
  let left = size;
  try {
    if (size > 0)
      for await (const chunk of createReadStream(path, { highWaterMark: READ_BYTES, end: size - 1 })) {
        left -= (chunk as Buffer).length;
        yield chunk as Buffer;
      }
  } catch (error) {
    throw fileUnreadable.because(error, path, messageOf(error));
  }
  if (left > 0) throw fileUnreadable(path, `it lost ${left} of its ${size} bytes while it was sent`);
}

async function* tarOf(entries: TarEntry[]): AsyncGenerator<Buffer> {
  const { pack } = await import('tar-stream');
  const archive: Pack = pack();
  const fill = async () => {
    for (const { path, ...header } of entries) {
      if (path === undefined) archive.entry(header, '');
      else await pipeline(contentOf({ path, size: header.size }), archive.entry(header));
    }
    archive.finalize();
  };
  fill().catch((error) => archive.destroy(error));
  yield* archive as AsyncIterable<Buffer>;
}

/** Servers and proxies that do not support `Expect` do not answer it, so the body is sent after this time. */
const CONTINUE_TIMEOUT_MS = 2000;

/**
 * Sends a file or a long JSON text. Waits for `100 Continue` before it sends the body, so that a refused body is not sent; `fetch` does not
 * wait, and does not read an early refusal. Throws TW_CLIENT_NO_FILE, and errors of the connection.
 */
async function sendBody(
  url: string,
  method: string,
  body: FileBody | string,
  headers: OutgoingHttpHeaders,
): Promise<{ status: number; text: string; headers: Record<string, string> }> {
  const isFile = body instanceof FileBody;
  const size = isFile ? await body.bytes() : Buffer.byteLength(body);
  const send = url.startsWith('https:') ? overHttps : overHttp;
  const request = send(url, {
    method,
    signal: isFile ? body.signal : undefined,
    headers: {
      ...headers,
      'content-type': isFile ? 'application/octet-stream' : 'application/json',
      'content-length': size,
      expect: '100-continue',
    },
  });
  const answered = new Promise<IncomingMessage>((resolve, reject) => {
    request.once('response', resolve).once('error', reject);
  });
  const timer = setTimeout(() => request.emit('continue'), CONTINUE_TIMEOUT_MS);
  let unreadable: TilewrightError | undefined;
  request.once('continue', () => {
    // An error here destroys the request, so `answered` rejects too, unless the server has answered already.
    const bytes = isFile ? body.stream() : Readable.from([Buffer.from(body)]);
    // The request itself reports only that the connection was closed.
    bytes.once('error', (error) => {
      if (error instanceof TilewrightError) unreadable = error;
    });
    // The listener above and the listeners of `request` report each error that rejects this.
    pipeline(bytes, request).catch(() => undefined);
  });
  request.flushHeaders();
  try {
    const answer = await answered.catch((error) => {
      throw unreadable ?? error;
    });
    return {
      status: answer.statusCode ?? 0,
      text: await text(answer),
      headers: answer.headers as Record<string, string>,
    };
  } finally {
    clearTimeout(timer);
    request.destroy();
  }
}

export interface Answer {
  status: number;
  /** The parsed JSON document, or null if the body is not JSON. */
  body: unknown;
  /** By lower-case name. */
  headers: Record<string, string>;
}

/**
 * Sends a request to a node: over HTTP, or directly to the routes of a node in this process. The body is sent as JSON, a `FileBody`
 * unchanged.
 */
export interface Transport {
  (method: string, path: string, body?: unknown): Promise<Answer>;
  /** Sends GET and returns the body as a stream. */
  open(
    path: string,
    headers: Record<string, string>,
    signal?: AbortSignal,
  ): Promise<{ status: number; body: AsyncIterable<string> }>;
  /** Sends GET and writes the body to the file `into`, unless the answer is an error. */
  download(path: string, into: string): Promise<Answer>;
}

/** Most routes refuse longer JSON, so longer bodies are sent with `Expect: 100-continue`. Characters. */
const MAX_FETCH_JSON_LENGTH = 1e6;

/** The server has refused a request because of its load, before it began with it. */
const BUSY = 'TW_API_BUSY';
const MAX_BUSY_ANSWERS = 20;

/**
 * Requests over HTTP, repeated as long as the server is busy. Errors: TW_CLIENT_UNREACHABLE, TW_CLIENT_NO_FILE and
 * TW_CLIENT_BROKEN_ANSWER.
 */
export function httpTransport(url: string, token?: string): Transport {
  const base = url.replace(/\/+$/, '');
  const withToken = (headers: Record<string, string>) =>
    token ? { ...headers, authorization: `Bearer ${token}` } : headers;
  const fail = (error: Error) => {
    // An unreadable file is not an error of the server.
    if (error instanceof TilewrightError) throw error;
    throw unreachable.because(error, base, messageOf(error));
  };
  const breakOff = (path: string) => (error: Error) => {
    throw answerBroken.because(error, path, messageOf(error));
  };
  const ask = async (method: string, path: string, body?: unknown): Promise<Answer> => {
    for (let tries = 1; ; tries++) {
      const answer = await askOnce(method, path, body);
      const isBusy = answer.status === 503 && Object(answer.body).code === BUSY;
      if (!isBusy || tries === MAX_BUSY_ANSWERS) return answer;
      await sleep(1000 * Number(answer.headers['retry-after'] ?? 1));
    }
  };
  const askOnce = async (method: string, path: string, body?: unknown): Promise<Answer> => {
    const headers = withToken({});
    const content = body instanceof FileBody ? body : (JSON.stringify(body) as string | undefined);
    if (content instanceof FileBody || (content !== undefined && content.length > MAX_FETCH_JSON_LENGTH)) {
      const { text, ...answer } = await sendBody(base + path, method, content, headers).catch(fail);
      return { ...answer, body: parseJsonOrNull(text) };
    }
    if (content !== undefined) headers['content-type'] = 'application/json';
    const request = { method, headers, ...(content !== undefined && { body: content }) };
    const response = await fetch(base + path, request).catch(fail);
    const answer = parseJsonOrNull(await response.text().catch(breakOff(path)));
    return { status: response.status, body: answer, headers: Object.fromEntries(response.headers) };
  };
  const open: Transport['open'] = async (path, headers, signal) => {
    const response = await fetch(base + path, { headers: withToken(headers), signal: signal ?? null }).catch(
      (error) => (signal?.aborted ? Promise.reject(error) : fail(error)),
    );
    return { status: response.status, body: decodeText(response.body ?? []) };
  };
  const download: Transport['download'] = async (path, into) => {
    const response = await fetch(base + path, { headers: withToken({}) }).catch(fail);
    const answer = { status: response.status, headers: Object.fromEntries(response.headers) };
    if (!response.ok || !response.body) return { ...answer, body: parseJsonOrNull(await response.text()) };
    const content = Readable.fromWeb(response.body as ReadableStream);
    let broken: Error | undefined;
    content.once('error', (error) => {
      broken = error;
    });
    await pipeline(content, createWriteStream(into)).catch((error) => {
      if (error === broken) breakOff(path)(error);
      throw error;
    });
    return { ...answer, body: null };
  };
  return Object.assign(ask, { open, download });
}

/** Decodes a stream of UTF-8 bytes. */
export async function* decodeText(
  body: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  for await (const bytes of body) yield decoder.decode(bytes, { stream: true });
}

/** The server's error with its own code, or TW_CLIENT_BAD_ANSWER. */
export function errorFromResponse(
  path: string,
  { status, body }: Pick<Answer, 'status' | 'body'>,
): TilewrightError {
  const problem = body as { code?: string; detail?: string } | null;
  if (problem?.code) return new TilewrightError(problem.code, status, problem.detail ?? problem.code);
  return badAnswer(path, status);
}

/** Returns null for a body that is not JSON; `Client` then reports that the answer is not from tilewright. */
export function parseJsonOrNull(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
