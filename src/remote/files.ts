/** Files on a host: reads of parts, which merge byte ranges into few requests, and downloads of whole files. */
import { createReadStream, createWriteStream } from 'node:fs';
import { rename, rm } from 'node:fs/promises';
import type { Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib';
import { runAllOrAbort } from '../async/index.js';
import { TilewrightError } from '../errors.js';
import type { HttpClient, RemoteResponse } from './client.js';
import { badRemoteEncoding, badRemoteRange, noRanges, remoteChanged, remoteTooLarge } from './errors.js';
import { withoutSecrets } from './hosts.js';

/** The first request reads this much. It holds the header of most Cloud Optimized GeoTIFFs. */
const START_BYTES = 32_768;
/** Later reads of a header read this much, as the lists of blocks lie one after the other. */
const READ_AHEAD_BYTES = 131_072;

/** Limit of one request, so that a few run at the same time and a failed one repeats little. */
const MAX_REQUEST_BYTES = 8 << 20;

const PARTIAL_CONTENT = 206;
const FAILED_PRECONDITION = 412;
const NOT_SATISFIABLE = 416;

/**
 * Invariant: all bytes are of one version of the file. A strong ETag is sent with each request (RFC 9110, section 13.1.1), and size and
 * ETag of each answer are compared with those of the first.
 */
export class RemoteFile {
  /** True if the copy on the disk is complete, so that nothing more is read. */
  isComplete = false;

  private constructor(
    private readonly client: HttpClient,
    readonly url: string,
    readonly size: number,
    /** ETag, or else the time of the last change; identifies the version of the file. */
    readonly version: string | undefined,
    /** The first bytes. */
    readonly start: Buffer,
    private readonly signal?: AbortSignal,
  ) {}

  /** Replaces a download by its bytes without the codings of the answer, see `decompressFile`. */
  static readonly decompress = decompressFile;

  /** Reads the first bytes. Throws TW_REMOTE_NO_RANGES if the host sends the whole file instead. */
  static async open(client: HttpClient, url: string, signal?: AbortSignal): Promise<RemoteFile> {
    const answer = await client
      .request(url, {
        headers: { range: `bytes=0-${START_BYTES - 1}` },
        maxBytes: START_BYTES,
        accept: [PARTIAL_CONTENT],
        isFile: true,
        signal,
      })
      .catch((error) => {
        // Hosts without ranges answer with the whole file.
        throw error.code === 'TW_REMOTE_TOO_LARGE' ? noRanges.because(error, withoutSecrets(url)) : error;
      });
    const { status, headers, body } = answer;
    // Parts of a compressed file are useless, so all of it is read and decompressed.
    if (status !== PARTIAL_CONTENT || isCompressed(headers)) throw noRanges(withoutSecrets(url));
    const size = sizeOfRange(url, { offset: 0, bytes: START_BYTES }, headers);
    const wanted = Math.min(START_BYTES, size);
    if (body.length !== wanted)
      throw badRemoteRange(withoutSecrets(url), `it sent ${body.length} of ${wanted} bytes`);
    const { etag, 'last-modified': changed } = headers;
    return new RemoteFile(client, url, size, etag ?? changed, body, signal);
  }

  /** Ranges of the whole file. */
  wholeRanges(): ByteRange[] {
    const count = Math.ceil(this.size / MAX_REQUEST_BYTES);
    return Array.from({ length: count }, (_, i) => ({
      offset: i * MAX_REQUEST_BYTES,
      bytes: Math.min(MAX_REQUEST_BYTES, this.size - i * MAX_REQUEST_BYTES),
    }));
  }

  /**
   * Reads parts, with a request for each, and gives their bytes to `write` as they arrive, in any order; some twice if a request is
   * repeated. `mergeRanges` makes the requests few.
   */
  async readRanges(
    ranges: readonly ByteRange[],
    write: (bytes: Buffer, position: number) => Promise<void>,
    signal = this.signal,
  ): Promise<void> {
    await runAllOrAbort(
      ranges.map((range) => (own) => this.readRange(range, write, own)),
      signal,
    );
  }

  /** Reads at least the given range, and more of a header behind it. */
  async readAhead({ offset, bytes }: ByteRange): Promise<{ offset: number; data: Buffer }> {
    const more = Math.min(Math.max(bytes, READ_AHEAD_BYTES), this.size - offset);
    const data = Buffer.alloc(more);
    await this.readRange({ offset, bytes: more }, async (chunk, position) => {
      chunk.copy(data, position - offset);
    });
    return { offset, data };
  }

  private async readRange(
    range: ByteRange,
    write: (bytes: Buffer, position: number) => Promise<void>,
    signal = this.signal,
  ): Promise<void> {
    const { url, version } = this;
    const { offset, bytes } = range;
    const isStrong = version !== undefined && /^"/.test(version);
    const end = offset + bytes;
    let position = offset;
    const { status } = await this.client.request(url, {
      maxBytes: bytes,
      accept: [PARTIAL_CONTENT, FAILED_PRECONDITION, NOT_SATISFIABLE],
      sink: {
        headers: () => {
          // A proxy can end a broken answer with other bytes, so all of it is read again.
          position = offset;
          return { range: `bytes=${offset}-${end - 1}`, ...(isStrong && { 'if-match': version }) };
        },
        start: (head) => {
          this.checkHead(range, head);
          return true;
        },
        write: async (chunk) => {
          if (position + chunk.length > end)
            throw badRemoteRange(withoutSecrets(url), `it sent more than ${bytes} bytes`);
          await write(chunk, position);
          position += chunk.length;
        },
      },
      signal,
    });
    if (status === FAILED_PRECONDITION || status === NOT_SATISFIABLE)
      throw remoteChanged(withoutSecrets(url));
    if (position !== end)
      throw badRemoteRange(withoutSecrets(url), `it sent ${position - offset} of ${bytes} bytes`);
  }

  /** Throws if an answer is not the requested part of this version of the file. */
  private checkHead(range: ByteRange, { status, headers }: Pick<RemoteResponse, 'status' | 'headers'>): void {
    const { url, version, size } = this;
    if ((headers.etag ?? headers['last-modified']) !== version) throw remoteChanged(withoutSecrets(url));
    if (status !== PARTIAL_CONTENT) throw badRemoteRange(withoutSecrets(url), `it answered ${status}`);
    if (sizeOfRange(url, range, headers) !== size) throw remoteChanged(withoutSecrets(url));
  }
}

/** Checks that an answer holds the requested bytes of a file, or its end. Returns the size of the file. */
function sizeOfRange(
  url: string,
  { offset, bytes }: ByteRange,
  headers: Pick<RemoteResponse, 'headers'>['headers'],
): number {
  const fail = (reason: string) => badRemoteRange(withoutSecrets(url), reason);
  const encoding = headers['content-encoding'] ?? 'identity';
  // Text of headers is not quoted as it is: it can repeat credentials.
  if (encoding !== 'identity') throw fail(`it is sent with ${knownEncoding(encoding)}`);
  const said = String(headers['content-range'] ?? '');
  const match = /^bytes (\d{1,16})-(\d{1,16})\/(\d{1,16})$/.exec(said);
  if (!match)
    throw fail(said === '' ? 'its answer has no Content-Range' : 'its Content-Range cannot be read');
  const [first, last, size] = match.slice(1).map(Number) as [number, number, number];
  if (!Number.isSafeInteger(size)) throw fail('its Content-Range cannot be read');
  const end = offset + Math.min(bytes, size - offset) - 1;
  if (first !== offset || last !== end)
    throw fail(`bytes ${offset} to ${end} were requested, and "${said}" came`);
  return size;
}

const knownEncoding = (encoding: string) =>
  /^(br|compress|deflate|gzip|x-gzip|zstd)$/i.test(encoding)
    ? `the encoding ${encoding}`
    : 'an unknown encoding';

const isCompressed = (headers: RemoteResponse['headers']) =>
  /^\s*(br|deflate|gzip|x-gzip)\s*(,|$)/i.test(headers['content-encoding'] ?? '');

export interface ByteRange {
  offset: number;
  bytes: number;
}

/** Unused bytes between two ranges that are read rather than requested separately: at 50 ms a request, they cost less. */
const MAX_GAP_BYTES = 65_536;

/** Merges byte ranges, so that few requests read many blocks. Returns the requests that cover all ranges, in ascending order. */
export function mergeRanges(ranges: readonly ByteRange[]): ByteRange[] {
  const merged: ByteRange[] = [];
  for (const { offset, bytes } of [...ranges].sort((a, b) => a.offset - b.offset)) {
    if (bytes === 0) continue;
    const last = merged.at(-1);
    const end = offset + bytes;
    const isNear = last && offset - (last.offset + last.bytes) <= MAX_GAP_BYTES;
    if (isNear && end - last.offset <= Math.max(MAX_REQUEST_BYTES, last.bytes))
      last.bytes = Math.max(last.bytes, end - last.offset);
    else merged.push({ offset, bytes });
  }
  return merged;
}

/** Bytes at the end of a broken answer that are read again. */
const OVERLAP_BYTES = 65_536;

/** Identifies the bytes of a file. */
export interface FileVersion {
  url: string;
  /** ETag, or else the time of the last change. */
  version: string | undefined;
  size: number | undefined;
  /** Names of the codings of the bytes, see `decompressFile`; undefined without a coding. */
  encoding?: string | undefined;
}

export interface DownloadTarget {
  /** Called before the bytes from the first one on, possibly more than once. Returns false if the bytes are not needed. */
  start(file: FileVersion): Promise<boolean>;
  write(bytes: Buffer, position: number): Promise<void>;
}

/**
 * Downloads a file as a whole, from a host that does not send parts of it when asked for its start. Returns the number of bytes. If the
 * connection breaks, the download continues where it has ended, provided that the host has sent a strong ETag and then sends parts;
 * otherwise it starts again. Throws TW_REMOTE_...
 */
export async function downloadFile(
  client: HttpClient,
  url: string,
  target: DownloadTarget,
  { maxBytes, signal }: { maxBytes: number; signal?: AbortSignal },
): Promise<number> {
  let position = 0;
  let version: string | undefined;
  let encoding: string | undefined;
  let end: number | undefined;
  const { status } = await client.request(url, {
    ...{ maxBytes, signal },
    accept: [PARTIAL_CONTENT, NOT_SATISFIABLE],
    isFile: true,
    sink: {
      headers: (): Record<string, string> => {
        // A proxy can end a broken answer with other bytes, and a connection can break after the last byte.
        position = Math.max(0, position - OVERLAP_BYTES);
        const isResumable = version !== undefined && /^"/.test(version) && encoding === undefined;
        if (position === 0 || !isResumable) return {};
        return { range: `bytes=${position}-`, 'if-range': version! };
      },
      start: ({ status, headers }) => {
        const found = headers.etag ?? headers['last-modified'];
        if (status !== PARTIAL_CONTENT) {
          position = 0;
          end = undefined;
          version = found;
          encoding = isCompressed(headers) ? headers['content-encoding'] : undefined;
          if (encoding === undefined && (headers['content-encoding'] ?? 'identity') !== 'identity')
            throw badRemoteEncoding(withoutSecrets(url), 'its coding is not gzip, deflate or br');
          const length = headers['content-length'];
          const size = length === undefined ? undefined : Number(length);
          return target.start({ url, version, size, encoding });
        }
        if (position === 0 || found !== version) throw remoteChanged(withoutSecrets(url));
        const size = sizeOfRange(url, { offset: position, bytes: Number.POSITIVE_INFINITY }, headers);
        if (size > maxBytes)
          throw badRemoteRange(withoutSecrets(url), `the file has ${size} bytes, more than ${maxBytes}`);
        end = size;
        return true;
      },
      write: async (chunk) => {
        await target.write(chunk, position);
        position += chunk.length;
      },
    },
  });
  if (status === NOT_SATISFIABLE) throw remoteChanged(withoutSecrets(url));
  if (end !== undefined && position !== end)
    throw badRemoteRange(withoutSecrets(url), `it sent ${position} of ${end} bytes`);
  return position;
}

const DECOMPRESSORS: Record<string, () => Transform> = {
  gzip: createGunzip,
  'x-gzip': createGunzip,
  deflate: createInflate,
  br: createBrotliDecompress,
};

/**
 * Replaces a downloaded file by its bytes without the codings of the answer, which some hosts send to clients that do not accept them.
 * `onBytes` gets the size of each piece before it is written. Throws TW_REMOTE_BAD_ENCODING and TW_REMOTE_TOO_LARGE.
 */
async function decompressFile(
  path: string,
  { url, encoding = '' }: Pick<FileVersion, 'url' | 'encoding'>,
  {
    maxBytes,
    signal,
    onBytes,
  }: { maxBytes: number; signal?: AbortSignal; onBytes(bytes: number): Promise<void> },
): Promise<void> {
  const source = `${path}.compressed`;
  for (const name of encoding.toLowerCase().split(',').reverse()) {
    const decompressor = DECOMPRESSORS[name.trim()];
    if (!decompressor) throw badRemoteEncoding(withoutSecrets(url), 'its coding is not gzip, deflate or br');
    let bytes = 0;
    const count = async function* (chunks: AsyncIterable<Buffer>) {
      for await (const chunk of chunks) {
        bytes += chunk.length;
        if (bytes > maxBytes) throw remoteTooLarge(withoutSecrets(url), maxBytes);
        await onBytes(chunk.length);
        yield chunk;
      }
    };
    await rename(path, source);
    try {
      await pipeline(createReadStream(source), decompressor(), count, createWriteStream(path), { signal });
    } catch (error) {
      signal?.throwIfAborted();
      const { code = '', message } = error as NodeJS.ErrnoException;
      throw error instanceof TilewrightError || !/^(Z_|ERR_)/.test(code)
        ? error
        : badRemoteEncoding.because(error, withoutSecrets(url), message);
    } finally {
      await rm(source, { force: true });
    }
  }
}
