/** Uploads the files of a data folder to the tile store of a cluster. */
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { mapConcurrent } from '../../async/index.js';
import {
  type ModelVersionRecord,
  modelFile,
  type ObjectStore,
  orIfMissing,
  type TileRecord,
  tileFile,
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
  async requireTiles(tiles: TileRecord[]): Promise<void> {
    const files = tiles.flatMap((tile) => tile.groups.map(({ name, bytes }) => ({ tile, name, bytes })));
    await mapConcurrent(files, CONCURRENCY, ({ tile, name, bytes }) =>
      requireSize(join(this.dir, tileFile(tile, name)), bytes),
    );
  }

  /** Checks the files of a version of a model. Throws TW_DHT_MOVE_IN_FILE. */
  async requireModel(model: ModelVersionRecord): Promise<void> {
    for (const { name, bytes } of model.files)
      await requireSize(join(this.dir, modelFile(model, name)), bytes);
  }

  /** Throws TW_STORE_CORRUPT if a file does not match its checksum. `onTile` is called once for each tile. */
  async uploadTiles(tiles: TileRecord[], version: string, onTile: () => void): Promise<void> {
    const files = tiles.flatMap((tile) => tile.groups.map((group) => ({ tile, group })));
    await mapConcurrent(files, CONCURRENCY, async ({ tile, group: { name, bytes, crc32 } }) => {
      await this.upload(tileFile(tile, name), tileFile({ ...tile, version }, name), bytes, crc32);
      if (name === tile.groups[0]!.name) onTile();
    });
  }

  /** Uploads the files of a version of a model. Throws TW_STORE_CORRUPT. */
  async uploadModel(model: ModelVersionRecord, version: string): Promise<void> {
    for (const { name, bytes, crc32 } of model.files)
      await this.upload(modelFile(model, name), modelFile({ ...model, version }, name), bytes, crc32);
  }

  private async upload(from: string, to: string, bytes: number, crc32: number): Promise<void> {
    this.signal?.throwIfAborted();
    const options = { crc32, ...(this.signal && { signal: this.signal }) };
    await this.objects.put(to, { file: join(this.dir, from) }, options);
    this.bytes += bytes;
  }
}

async function requireSize(path: string, bytes: number): Promise<void> {
  const info = await orIfMissing(stat(path), undefined);
  if (!info) throw importFileDamaged(path, 'it is missing');
  if (info.size !== bytes) throw importFileDamaged(path, `it has ${info.size} bytes instead of ${bytes}`);
}
