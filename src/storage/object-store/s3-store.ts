/**
 * A tile store in an S3 bucket: AWS, MinIO, Ceph, SeaweedFS, Garage. It uses PUT, GET, HEAD, DELETE and LIST only, and multipart uploads
 * for files above `PART_BYTES`.
 */
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { Readable } from 'node:stream';
import {
  AbortMultipartUploadCommand,
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  DeleteObjectCommand,
  GetObjectCommand,
  HeadObjectCommand,
  ListObjectsV2Command,
  PutObjectCommand,
  type S3Client,
  UploadPartCommand,
} from '@aws-sdk/client-s3';
import { mapConcurrent } from '../../async/index.js';
import { asStorageError, onDisk } from '../disk.js';
import { storeExists, storeIo } from '../errors.js';
import { checkedName, isObjectName } from '../file-names.js';
import { type Checksum, type Chunks, checksumOf } from '../files.js';
import {
  type Cancellable,
  type Content,
  type CopyOptions,
  concatChunks,
  contentChunks,
  type ObjectInfo,
  type ObjectStore,
  type PutOptions,
  type ReadOptions,
  requireChecksum,
  streamOf,
  withChecksum,
  writeChunks,
} from './object-store.js';
import { isMissingObject, RetryingS3Client, type S3Failure, type S3Options, statusOf } from './s3-client.js';

/** Files up to this size are sent from memory, signed with their SHA-256; larger ones are streamed, with an MD5. */
const MAX_IN_MEMORY_BYTES = 4 << 20;

/** Bytes of a stream that one request reads. */
const PIECE_BYTES = 2 << 20;

/** Files up to this size are sent by one PUT (S3 allows 5 GB), larger ones in parts of this size, of which S3 allows 10,000. */
const PART_BYTES = 2 ** 30;
/** Parts of one file that are sent at the same time. */
const PARTS_IN_FLIGHT = 2;

/** Part of a file, with its MD5 in base64. */
interface FilePart {
  start: number;
  bytes: number;
  md5: string;
}

/** Body of an upload: bytes in memory, or a file in parts. */
type UploadBody = Checksum & ({ memory: Uint8Array } | { file: string; parts: FilePart[] });

/**
 * An object becomes visible as a whole. A killed process leaves nothing of one that is sent by one PUT; of a larger one it leaves parts,
 * which a rule of the bucket should remove. A request is repeated after transient errors; a download resumes where it broke off.
 */
export class S3Store implements ObjectStore {
  readonly url: string;
  private readonly client: S3Client;
  /** HEAD returns the same for a missing bucket as for a missing object, so the bucket is checked once. */
  private isBucketVerified = false;

  /** `prefix` is empty or ends with `/`. */
  static async open(bucket: string, prefix: string, options?: S3Options): Promise<S3Store> {
    const url = `s3://${bucket}/${prefix}`.replace(/\/$/, '');
    const requests = await RetryingS3Client.open(url, bucket, options);
    return new S3Store(url, bucket, prefix, requests, options?.partBytes);
  }

  private constructor(
    url: string,
    private readonly bucket: string,
    private readonly prefix: string,
    private readonly requests: RetryingS3Client,
    private readonly partBytes = PART_BYTES,
  ) {
    this.url = url;
    this.client = requests.client;
  }

  async put(name: string, content: Content, { crc32, signal, ifAbsent }: PutOptions = {}): Promise<void> {
    const key = this.key(name);
    signal?.throwIfAborted();
    const body = await bodyOf(content, this.partBytes, signal);
    requireChecksum(body.crc32, crc32, name, this.url);
    let existing = await this.head(name, { signal });
    if (!existing && ifAbsent && 'memory' in body) {
      if (await this.requests.send(name, () => this.uploadIfAbsent(key, body.memory, signal), signal)) return;
      existing = await this.head(name, { signal });
    }
    if (!existing) await this.upload(name, body, signal);
    else if (!(await this.hasSameContent(existing, body, signal))) throw storeExists(name, this.url);
  }

  /** False if the key is taken, or the server returns 501 because it has no conditional writes. Other such servers always write. */
  private async uploadIfAbsent(key: string, memory: Uint8Array, signal?: AbortSignal): Promise<boolean> {
    const target = { Bucket: this.bucket, Key: key, ContentLength: memory.length };
    try {
      const put = new PutObjectCommand({ ...target, Body: memory, IfNoneMatch: '*' });
      await this.client.send(put, { abortSignal: signal });
      return true;
    } catch (error) {
      if ([412, 501].includes(statusOf(error as S3Failure))) return false;
      throw error;
    }
  }

  private async upload(name: string, body: UploadBody, signal?: AbortSignal): Promise<void> {
    const target = { Bucket: this.bucket, Key: this.key(name) };
    if ('memory' in body) {
      const { memory, bytes } = body;
      const put = () => new PutObjectCommand({ ...target, Body: memory, ContentLength: bytes });
      await this.requests.send(name, () => this.client.send(put(), { abortSignal: signal }), signal);
      return;
    }
    const { file, parts } = body;
    if (parts.length > 1) return this.uploadParts(name, body, signal);
    const put = (content: FileContent, abortSignal: AbortSignal) =>
      this.client.send(new PutObjectCommand({ ...target, ...content }), { abortSignal });
    await this.requests.send(name, () => sendPart(file, parts[0]!, put, signal), signal);
  }

  private async uploadParts(
    name: string,
    { file, parts, bytes }: Checksum & { file: string; parts: FilePart[] },
    signal?: AbortSignal,
  ): Promise<void> {
    const target = { Bucket: this.bucket, Key: this.key(name) };
    const send = <T>(request: (abortSignal?: AbortSignal) => Promise<T>) =>
      this.requests.send(name, () => request(signal), signal);
    const create = new CreateMultipartUploadCommand(target);
    const { UploadId } = await send((abortSignal) => this.client.send(create, { abortSignal }));
    const upload = { ...target, UploadId };
    try {
      const numbered = parts.map((part, i) => ({ part, PartNumber: i + 1 }));
      const Parts = await mapConcurrent(numbered, PARTS_IN_FLIGHT, async ({ part, PartNumber }) => {
        const put = (content: FileContent, abortSignal: AbortSignal) =>
          this.client.send(new UploadPartCommand({ ...upload, PartNumber, ...content }), { abortSignal });
        const { ETag } = await this.requests.send(name, () => sendPart(file, part, put, signal), signal);
        return { ETag, PartNumber };
      });
      const complete = new CompleteMultipartUploadCommand({ ...upload, MultipartUpload: { Parts } });
      await send((abortSignal) => this.client.send(complete, { abortSignal }));
    } catch (error) {
      // The answer to an attempt that completed the upload may have been lost.
      if (isUploadGone(error) && (await this.head(name, { signal }))?.bytes === bytes) return;
      const abort = new AbortMultipartUploadCommand(upload);
      // The error that ended the upload is thrown. If the server does not answer, a rule of the bucket removes the parts.
      await this.requests.send(name, () => this.client.send(abort)).catch(() => undefined);
      throw error;
    }
  }

  private async hasSameContent(
    { name, bytes }: ObjectInfo,
    sum: Checksum,
    signal?: AbortSignal,
  ): Promise<boolean> {
    return bytes === sum.bytes && (await checksumOf(this.read(name, { signal }))).crc32 === sum.crc32;
  }

  get(name: string, options: ReadOptions = {}): Promise<Buffer> {
    return concatChunks(this.read(name, options));
  }

  /** Reads piece by piece, so that a reader that waits holds no permit and no connection. */
  stream(name: string, options: ReadOptions = {}): Promise<Readable> {
    return streamOf(withChecksum(this.pieces(name, options), options, name, this.url));
  }

  private async *pieces(
    name: string,
    { offset = 0, length = Number.POSITIVE_INFINITY, signal }: ReadOptions,
  ): Chunks {
    const end = offset + length;
    for (let at = offset; at < end; at += PIECE_BYTES) {
      const bytes = Math.min(PIECE_BYTES, end - at);
      const piece = await concatChunks(this.chunks(name, { offset: at, length: bytes, signal }));
      if (piece.length > 0) yield piece;
      if (piece.length < bytes) return;
    }
  }

  async copyTo(name: string, file: string, options: CopyOptions = {}): Promise<void> {
    await onDisk(dirname(file), () => writeChunks(file, this.read(name, options)));
  }

  private read(name: string, options: ReadOptions): Chunks {
    return withChecksum(this.chunks(name, options), options, name, this.url);
  }

  private async *chunks(
    name: string,
    { offset = 0, length = Number.POSITIVE_INFINITY, signal }: ReadOptions,
  ): Chunks {
    const key = this.key(name);
    const release = await this.requests.semaphore.acquire(signal);
    const attempts = this.requests.retryState(signal);
    let at = offset;
    try {
      for (;;)
        try {
          for await (const chunk of await this.open(key, at, offset + length, signal)) {
            attempts.reset();
            at += chunk.length;
            yield chunk;
          }
          return;
        } catch (error) {
          await attempts.waitAfter(error);
        }
    } catch (error) {
      throw await this.requests.explainError(error, name, signal);
    } finally {
      release();
    }
  }

  /** The bytes from `start` to before `end`; none behind the end of the object. */
  private async open(
    key: string,
    start: number,
    end: number,
    signal?: AbortSignal,
  ): Promise<Iterable<Uint8Array> | AsyncIterable<Uint8Array>> {
    if (start >= end) return [];
    const isEntire = start === 0 && end === Number.POSITIVE_INFINITY;
    const range = isEntire ? undefined : `bytes=${start}-${end === Number.POSITIVE_INFINITY ? '' : end - 1}`;
    try {
      const { Body, ContentRange } = await this.client.send(
        new GetObjectCommand({ Bucket: this.bucket, Key: key, Range: range }),
        { abortSignal: signal },
      );
      if (range && !ContentRange) throw storeIo(this.url, key, 'the server has no ranges of bytes');
      return (Body as Readable | undefined) ?? [];
    } catch (error) {
      if (statusOf(error as S3Failure) === 416) return [];
      throw error;
    }
  }

  async head(name: string, { signal }: Cancellable = {}): Promise<ObjectInfo | undefined> {
    const command = new HeadObjectCommand({ Bucket: this.bucket, Key: this.key(name) });
    const found = await this.requests.send(
      name,
      () => this.client.send(command, { abortSignal: signal }).catch(ignoreMissing),
      signal,
    );
    if (!found && !this.isBucketVerified) await this.requireBucket(signal);
    this.isBucketVerified = true;
    return found && { name, bytes: found.ContentLength ?? 0, modified: found.LastModified?.getTime() ?? 0 };
  }

  private async requireBucket(signal?: AbortSignal): Promise<void> {
    const command = new ListObjectsV2Command({ Bucket: this.bucket, Prefix: this.prefix, MaxKeys: 1 });
    await this.requests.send('list', () => this.client.send(command, { abortSignal: signal }), signal);
  }

  async *list(prefix: string, { signal }: Cancellable = {}): AsyncGenerator<ObjectInfo> {
    const Prefix = this.prefix + checkedName('start of an object name', prefix);
    let ContinuationToken: string | undefined;
    do {
      const command = new ListObjectsV2Command({ Bucket: this.bucket, Prefix, ContinuationToken });
      const page = await this.requests.send(
        `list of ${prefix}`,
        () => this.client.send(command, { abortSignal: signal }),
        signal,
      );
      for (const { Key = '', Size = 0, LastModified } of page.Contents ?? []) {
        const name = Key.slice(this.prefix.length);
        if (isObjectName(name)) yield { name, bytes: Size, modified: LastModified?.getTime() ?? 0 };
      }
      ContinuationToken = page.IsTruncated ? page.NextContinuationToken : undefined;
    } while (ContinuationToken);
  }

  async delete(names: string[], { signal }: Cancellable = {}): Promise<void> {
    const keys = names.map((name) => this.key(name));
    await mapConcurrent(keys, this.requests.concurrency, (Key) =>
      this.requests.send(
        `delete of ${Key}`,
        () => {
          const command = new DeleteObjectCommand({ Bucket: this.bucket, Key });
          return this.client.send(command, { abortSignal: signal }).catch(ignoreMissing);
        },
        signal,
      ),
    );
  }

  location(name: string): string {
    return `/vsis3/${this.bucket}/${this.key(name)}`;
  }

  close(): void {
    this.client.destroy();
  }

  private key(name: string): string {
    return this.prefix + checkedName('object name', name);
  }
}

interface FileContent {
  Body: Readable;
  ContentLength: number;
  ContentMD5: string;
}

/** Sends a part of a file. Errors of the local disk become TW_STORAGE_ errors. */
async function sendPart<T>(
  file: string,
  { start, bytes, md5 }: FilePart,
  send: (content: FileContent, signal: AbortSignal) => Promise<T>,
  signal?: AbortSignal,
): Promise<T> {
  const stream = createReadStream(file, { start, end: start + bytes - 1 });
  const unreadable = new AbortController();
  stream.once('error', (error) => unreadable.abort(error));
  const abortSignal = signal ? AbortSignal.any([signal, unreadable.signal]) : unreadable.signal;
  try {
    return await send({ Body: stream, ContentLength: bytes, ContentMD5: md5 }, abortSignal);
  } catch (error) {
    throw stream.errored ? asStorageError(stream.errored, dirname(file)) : error;
  } finally {
    stream.destroy();
  }
}

/** True if a multipart upload has been completed or aborted. */
const isUploadGone = (error: unknown) =>
  error instanceof Error &&
  (error.name === 'NoSuchUpload' || (error.cause as Error)?.name === 'NoSuchUpload');

function ignoreMissing(error: unknown): undefined {
  if (!isMissingObject(error)) throw error;
}

async function bodyOf(content: Content, partBytes: number, signal?: AbortSignal): Promise<UploadBody> {
  const isLarge =
    'file' in content &&
    (await onDisk(dirname(content.file), () => stat(content.file))).size > MAX_IN_MEMORY_BYTES;
  if (isLarge) {
    const parts: FilePart[] = [];
    let start = 0;
    let bytes = 0;
    let md5 = createHash('md5');
    const endPart = () => {
      parts.push({ start, bytes, md5: md5.digest('base64') });
      start += bytes;
      bytes = 0;
      md5 = createHash('md5');
    };
    const sum = await checksumOf(contentChunks(content, signal), (chunk) => {
      let from = 0;
      while (from < chunk.length) {
        if (bytes === partBytes) endPart();
        const piece = chunk.subarray(from, from + partBytes - bytes);
        md5.update(piece);
        bytes += piece.length;
        from += piece.length;
      }
    });
    endPart();
    return { ...sum, file: content.file, parts };
  }
  const memory = await concatChunks(contentChunks(content, signal));
  return { ...(await checksumOf(contentChunks(memory))), memory };
}
