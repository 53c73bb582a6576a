/** Sends the files of a folder to the tile store of a cluster. */
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { mapConcurrent } from '../../async/index.js';
import {
  type ModelVersionRecord,
  modelFile,
  type ObjectStore,
  type TileRecord,
  tileFile,
} from '../../storage/index.js';
import { importFileDamaged } from '../errors.js';

/** Files on their way to the store at once. */
const CONCURRENCY = 16;

/** They get the names of new versions, those of the claims under which they are committed. */
export class FileUploader {
  /** Of the files that were sent. */
  bytes = 0;

  constructor(
    private readonly dir: string,
    private readonly objects: ObjectStore,
    private readonly signal: AbortSignal | undefined,
  ) {}

  /** Whether all are there, as long as they were written. Throws TW_DHT_MOVE_IN_FILE. */
  async requireTiles(tiles: TileRecord[]): Promise<void> {
    const files = tiles.flatMap((tile) => tile.groups.map(({ name, bytes }) => ({ tile, name, bytes })));
    await mapConcurrent(files, CONCURRENCY, ({ tile, name, bytes }) =>
      requireSize(join(this.dir, tileFile(tile, name)), bytes),
    );
  }

  /** The same for a version of a model. */
  async requireModel(model: ModelVersionRecord): Promise<void> {
    for (const { name, bytes } of model.files)
      await requireSize(join(this.dir, modelFile(model, name)), bytes);
  }

  /** Throws TW_STORE_CORRUPT where a file is not what was written. `onTile` is called for each tile. */
  async uploadTiles(tiles: TileRecord[], version: string, onTile: () => void): Promise<void> {
    const files = tiles.flatMap((tile) => tile.groups.map((group) => ({ tile, group })));
    await mapConcurrent(files, CONCURRENCY, async ({ tile, group: { name, bytes, crc32 } }) => {
      await this.upload(tileFile(tile, name), tileFile({ ...tile, version }, name), bytes, crc32);
      if (name === tile.groups[0]!.name) onTile();
    });
  }

  /** The same for a version of a model. */
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
  const found = await stat(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') throw importFileDamaged(path, 'it is missing');
    throw error;
  });
  if (found.size !== bytes) throw importFileDamaged(path, `it has ${found.size} bytes in place of ${bytes}`);
}
