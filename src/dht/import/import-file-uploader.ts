/** Uploads the files of a data folder to the tile store of a cluster. */
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { mapConcurrent } from '../../async/index.js';
import {
  filesOf,
  type ModelVersionRecord,
  type ObjectStore,
  orIfMissing,
  type TileRecord,
} from '../../storage/index.js';
import { importFileDamaged } from '../errors.js';

/** Files that are uploaded at the same time. */
const CONCURRENCY = 16;

/** The files get the names of new versions, which come from the locks under which they are committed. */
export class FileUploader {
  /** Bytes of the uploaded files. */
  bytes = 0;

  constructor(
    private readonly dir: string,
    private readonly objects: ObjectStore,
    private readonly signal: AbortSignal | undefined,
  ) {}

  /** Checks that all files exist with their recorded sizes. Throws TW_DHT_MOVE_IN_FILE. */
  async require(records: (TileRecord | ModelVersionRecord)[]): Promise<void> {
    await mapConcurrent(records.flatMap(filesOf), CONCURRENCY, ({ path, bytes }) =>
      requireSize(join(this.dir, path), bytes),
    );
  }

  /** Throws TW_STORE_CORRUPT if a file does not match its checksum. `onRecord` is called once for each record. */
  async upload(
    records: (TileRecord | ModelVersionRecord)[],
    version: string,
    onRecord = () => {},
  ): Promise<void> {
    const files = records.flatMap((record) => {
      const targets = filesOf({ ...record, version });
      return filesOf(record).map((file, i) => ({ ...file, to: targets[i]!.path, isFirst: i === 0 }));
    });
    await mapConcurrent(files, CONCURRENCY, async ({ path, to, bytes, crc32, isFirst }) => {
      this.signal?.throwIfAborted();
      await this.objects.put(to, { file: join(this.dir, path) }, { crc32, signal: this.signal });
      this.bytes += bytes;
      if (isFirst) onRecord();
    });
  }
}

async function requireSize(path: string, bytes: number): Promise<void> {
  const info = await orIfMissing(stat(path), undefined);
  if (!info) throw importFileDamaged(path, 'it is missing');
  if (info.size !== bytes) throw importFileDamaged(path, `it has ${info.size} bytes instead of ${bytes}`);
}
