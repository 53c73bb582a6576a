/** A tile store in an S3 bucket: AWS, MinIO, Ceph, SeaweedFS, Garage. It uses PUT, GET, HEAD, DELETE and LIST only. */
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { Readable } from 'node:stream';
import {
  DeleteObjectCommand,
  GetObjectCommand,
  HeadObjectCommand,
  ListObjectsV2Command,
  PutObjectCommand,
  type S3Client,
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

/** Body of an upload: bytes in memory, or a file and its MD5. */
type UploadBody = Checksum & ({ memory: Uint8Array } | { file: string; md5: string });

/**
 * An object is sent by one PUT, even a large one (S3 allows 5 GB): it becomes visible as a whole, and a killed process leaves
 * no parts. A request is repeated after transient errors; a download resumes where it broke off.
 */
export class S3Store implements ObjectStore {
  readonly url: string;
  private readonly client: S3Client;
  /** HEAD returns the same for a missing bucket as for a missing object, so the bucket is checked once. */
  private isBucketVerified = false;

  /** `prefix` is empty or ends with `/`. */
  static async open(bucket: string, prefix: string, options?: S3Options): Promise<S3Store> {
    const url = `s3://${bucket}/${prefix}`.replace(/\/$/, '');
    return new S3Store(url, bucket, prefix, await RetryingS3Client.open(url, bucket, options));
  }

  private constructor(
    url: string,
    private readonly bucket: string,
    private readonly prefix: string,
    private readonly requests: RetryingS3Client,
  ) {
    this.url = url;
    this.client = requests.client;
  }

  async put(name: string, content: Content, { crc32, signal, ifAbsent }: PutOptions = {}): Promise<void> {
    const key = this.key(name);
    signal?.throwIfAborted();
    const body = await bodyOf(content, signal);
    requireChecksum(body.crc32, crc32, name, this.url);
    let existing = await this.head(name, { signal });
    if (!existing && ifAbsent && 'memory' in body) {
      if (await this.requests.send(name, () => this.uploadIfAbsent(key, body.memory, signal), signal)) return;
      existing = await this.head(name, { signal });
    }
    if (!existing) await this.requests.send(name, () => this.upload(key, body, signal), signal);
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

  private async upload(key: string, body: UploadBody, signal?: AbortSignal): Promise<void> {
    const target = { Bucket: this.bucket, Key: key, ContentLength: body.bytes };
    if ('memory' in body) {
      await this.client.send(new PutObjectCommand({ ...target, Body: body.memory }), {
        abortSignal: signal,
      });
      return;
    }
    const stream = createReadStream(body.file, { end: Math.max(0, body.bytes - 1) });
    const unreadable = new AbortController();
    stream.once('error', (error) => unreadable.abort(error));
    const abortSignal = signal ? AbortSignal.any([signal, unreadable.signal]) : unreadable.signal;
    try {
      await this.client.send(new PutObjectCommand({ ...target, Body: stream, ContentMD5: body.md5 }), {
        abortSignal,
      });
    } catch (error) {
      throw stream.errored ? asStorageError(stream.errored, dirname(body.file)) : error;
    } finally {
      stream.destroy();
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

function ignoreMissing(error: unknown): undefined {
  if (!isMissingObject(error)) throw error;
}

async function bodyOf(content: Content, signal?: AbortSignal): Promise<UploadBody> {
  const isLarge =
    'file' in content &&
    (await onDisk(dirname(content.file), () => stat(content.file))).size > MAX_IN_MEMORY_BYTES;
  if (isLarge) {
    const md5 = createHash('md5');
    const sum = await checksumOf(contentChunks(content, signal), (chunk) => md5.update(chunk));
    return { ...sum, file: content.file, md5: md5.digest('base64') };
  }
  const memory = await concatChunks(contentChunks(content, signal));
  return { ...(await checksumOf(contentChunks(memory))), memory };
}
