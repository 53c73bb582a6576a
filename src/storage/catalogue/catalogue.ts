/** The catalogue: typed tables of small records over LevelDB. */
import { Level } from 'level';
import { onDisk } from '../files/index.js';
import {
  type ClusteringRecord,
  type CollectionRecord,
  type JobRecord,
  type LogRecord,
  type ModelRecord,
  type ReplicaRecord,
  type RequestRecord,
  type SceneRecord,
  type TextureRecord,
  type TileRecord,
  type TileSchema,
  TileSchemas,
} from '../records/index.js';
import { type CatalogueChange, Table } from './catalogue-table.js';
import { LevelWriter } from './catalogue-writer.js';

/** The log entry of a commit that changed tiles. */
export interface IndexLogRecord {
  /** Random. Distinguishes commits with the same number after the folder was restored from a copy. */
  tag: string;
  /** Ids of the tiles that were added, changed or removed. */
  tiles: string[];
}

/**
 * | table | key |
 * |---|---|
 * | collections | collection id |
 * | scenes | `<collection>/<scene>` |
 * | tiles | tile id, which begins with `<collection>_<scene>_` |
 * | layouts | digest of the common part of tile records (`TileSchemas`) |
 * | models | model id |
 * | textures | `<collection>/<geocode>` |
 * | clusterings | collection id |
 * | jobs | job id |
 * | logs | `<job>/<number of the line>`, ten digits |
 * | requests | SHA-256 of the key that the client gave to the request |
 * | pending | folder of a tile or model version that is being written, relative to the data folder |
 * | superseded | folder of a version that no record names any more |
 * | replica | `state`: the part of a cluster that the folder has (`ReplicaRecord`) |
 * | commits | number of a commit that changed tiles, 12 digits; commits that the index's snapshot contains are dropped |
 *
 * Invariants: a synced `write` is completely on disk when its promise resolves. After a failed `write` the catalogue accepts no
 * others (see `LevelWriter`), and only the next open shows whether the failed one was made.
 */
export class Catalogue {
  readonly collections: Table<CollectionRecord>;
  readonly scenes: Table<SceneRecord>;
  readonly tiles: Table<TileRecord>;
  readonly layouts: Table<TileSchema>;
  readonly models: Table<ModelRecord>;
  readonly textures: Table<TextureRecord>;
  readonly clusterings: Table<ClusteringRecord>;
  readonly jobs: Table<JobRecord>;
  readonly logs: Table<LogRecord>;
  readonly requests: Table<RequestRecord>;
  readonly pending: Table<{ since: number }>;
  readonly superseded: Table<{ since: number }>;
  readonly replica: Table<ReplicaRecord>;
  readonly commits: Table<IndexLogRecord>;
  readonly tileLayouts = new TileSchemas();
  private readonly writer: LevelWriter<Buffer>;

  private constructor(
    readonly dir: string,
    db: Level<string, Buffer>,
  ) {
    this.writer = new LevelWriter(db);
    const table = <T>(name: string) => new Table<T>(name, db);
    this.collections = table('collections');
    this.scenes = table('scenes');
    this.tiles = new Table('tiles', db, this.tileLayouts);
    this.layouts = table('layouts');
    this.models = table('models');
    this.textures = table('textures');
    this.clusterings = table('clusterings');
    this.jobs = table('jobs');
    this.logs = table('logs');
    this.requests = table('requests');
    this.pending = table('pending');
    this.superseded = table('superseded');
    this.replica = table('replica');
    this.commits = table('commits');
  }

  /**
   * With `create`, a missing catalogue is created; without it, a missing one is an error. Throws TW_STORAGE_LOCKED if this or
   * another process has it open.
   */
  static async open(dir: string, create = true): Promise<Catalogue> {
    const db = new Level<string, Buffer>(dir, { valueEncoding: 'buffer', createIfMissing: create });
    await onDisk(dir, () => db.open());
    const catalogue = new Catalogue(dir, db);
    try {
      // Damaged ones are reported when their tiles are read, and by `verify`.
      for await (const { key, record } of catalogue.layouts.scan())
        if (record) catalogue.tileLayouts.add(key, record);
      return catalogue;
    } catch (error) {
      await catalogue.close();
      throw error;
    }
  }

  /**
   * Writes all changes or none, in one batch with the schemas that their tiles need. `sync` is false only if another copy
   * survives a power cut.
   */
  async write(changes: CatalogueChange[], sync = true): Promise<void> {
    const layouts = this.tileLayouts.takeUnwritten();
    const puts = layouts.map(([key, layout]) => this.layouts.set(key, layout));
    await this.writer.write([...puts, ...changes], sync);
    this.tileLayouts.markWritten(layouts);
  }

  /** Error of a failed write, after which only the next open can tell what is on disk; undefined if none has failed. */
  get writeError(): unknown {
    return this.writer.writeError;
  }

  close(): Promise<void> {
    return this.writer.close();
  }
}

export function sceneKey(collection: string, scene: string): string {
  return `${collection}/${scene}`;
}
