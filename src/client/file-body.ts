/** Files as the body of a request: one as it is, several as a tar archive. */
import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { basename } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { type Pack, pack } from 'tar-stream';

const READ_BYTES = 1 << 20;
const TAR_BLOCK_BYTES = 512;

/** A body that is streamed from disk: the file, or with side files a tar archive of all of them under their own names. */
export class FileBody {
  constructor(
    readonly path: string,
    readonly sideFiles: readonly string[] = [],
    readonly signal?: AbortSignal,
  ) {}

  /** The name of the body: the archive of `a.tif` is `a.tif.tar`. */
  get name(): string {
    return basename(this.path) + (this.sideFiles.length > 0 ? '.tar' : '');
  }

  async bytes(): Promise<number> {
    if (this.sideFiles.length === 0) return (await stat(this.path)).size;
    const entries = await this.entries();
    let total = 0;
    // The length of a header depends on the name alone.
    for await (const chunk of tarOf(entries.map(({ name }) => ({ name, size: 0 })))) total += chunk.length;
    for (const { size } of entries) total += Math.ceil(size / TAR_BLOCK_BYTES) * TAR_BLOCK_BYTES;
    return total;
  }

  /** All bytes. Errors of the file system destroy the stream. */
  stream(): Readable {
    if (this.sideFiles.length === 0) return createReadStream(this.path, { highWaterMark: READ_BYTES });
    const entries = async function* (body: FileBody) {
      yield* tarOf(await body.entries());
    };
    return Readable.from(entries(this), { objectMode: false });
  }

  private entries(): Promise<TarEntry[]> {
    return Promise.all(
      [this.path, ...this.sideFiles].map(async (path) => ({
        name: basename(path),
        size: (await stat(path)).size,
        path,
      })),
    );
  }
}

interface TarEntry {
  name: string;
  size: number;
  /** An entry without a file is empty. */
  path?: string;
}

function tarOf(entries: TarEntry[]): AsyncIterable<Buffer> {
  const archive: Pack = pack();
  const fill = async () => {
    for (const { path, ...header } of entries) {
      if (path === undefined) archive.entry(header, '');
      else await pipeline(createReadStream(path, { highWaterMark: READ_BYTES }), archive.entry(header));
    }
    archive.finalize();
  };
  fill().catch((error) => archive.destroy(error));
  return archive as AsyncIterable<Buffer>;
}
