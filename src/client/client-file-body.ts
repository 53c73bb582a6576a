/** Files as the body of a request: a single file unchanged, several files as a tar archive. */
import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { basename } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { Pack } from 'tar-stream';
import { messageOf } from '../errors.js';
import { fileUnreadable } from './errors.js';

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
