/** A file on a host, of which parts are read. */

import { runAllOrAbort } from '../../async/index.js';
import { badRemoteRange, noRanges, remoteChanged } from '../errors.js';
import { withoutSecrets } from './host-policy.js';
import type { HttpClient, RemoteResponse } from './http-client.js';
import type { ByteRange } from './merge-ranges.js';

/** The first request reads this much. It holds the header of most Cloud Optimized GeoTIFFs. */
const START_BYTES = 32_768;
/** Later reads of a header read this much, as the lists of blocks lie one after the other. */
const READ_AHEAD_BYTES = 131_072;

/** Requests for a whole file read this much each, so that a failed one repeats little. */
const WHOLE_RANGE_BYTES = 8 << 20;

const PARTS = 206;
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

  /** Reads the first bytes. Throws TW_REMOTE_NO_RANGES if the host sends the whole file instead. */
  static async open(client: HttpClient, url: string, signal?: AbortSignal): Promise<RemoteFile> {
    const answer = await client
      .request(url, {
        headers: { range: `bytes=0-${START_BYTES - 1}` },
        maxBytes: START_BYTES,
        accept: [PARTS],
        isFile: true,
        signal,
      })
      .catch((error) => {
        // Hosts without ranges answer with the whole file.
        throw error.code === 'TW_REMOTE_TOO_LARGE' ? noRanges.because(error, withoutSecrets(url)) : error;
      });
    const { status, headers, body } = answer;
    if (status !== PARTS) throw noRanges(withoutSecrets(url));
    const size = sizeOfRange(url, { offset: 0, bytes: START_BYTES }, headers);
    const wanted = Math.min(START_BYTES, size);
    if (body.length !== wanted)
      throw badRemoteRange(withoutSecrets(url), `it sent ${body.length} of ${wanted} bytes`);
    const { etag, 'last-modified': changed } = headers;
    return new RemoteFile(client, url, size, etag ?? changed, body, signal);
  }

  /** Ranges of the whole file. */
  wholeRanges(): ByteRange[] {
    const count = Math.ceil(this.size / WHOLE_RANGE_BYTES);
    return Array.from({ length: count }, (_, i) => ({
      offset: i * WHOLE_RANGE_BYTES,
      bytes: Math.min(WHOLE_RANGE_BYTES, this.size - i * WHOLE_RANGE_BYTES),
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
      accept: [PARTS, FAILED_PRECONDITION, NOT_SATISFIABLE],
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
    if (status !== PARTS) throw badRemoteRange(withoutSecrets(url), `it answered ${status}`);
    if (sizeOfRange(url, range, headers) !== size) throw remoteChanged(withoutSecrets(url));
  }
}

/** Checks that an answer holds the requested bytes of a file, or its end. Returns the size of the file. */
export function sizeOfRange(
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
