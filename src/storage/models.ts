/** Trained models: their records, and the files of their versions. */
import { readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { crc32 } from 'node:zlib';
import type { Fetcher } from './cache-fetcher.js';
import type { ScanResult } from './catalogue.js';
import type { Commit } from './commit.js';
import type { DataFolder } from './data-folder.js';
import { onDisk } from './disk.js';
import { modelDamaged, modelNotFound, modelVersionNotFound } from './errors.js';
import { checkedName, type ModelVersion, modelFile, modelFolder, modelId } from './file-names.js';
import type { ModelFile, ModelRecord, ModelVersionRecord, TrainedVersion } from './records.js';
import { type LockManager, StagedVersions, withLock } from './write-lock.js';

/** One file of a version of a model: its path and its record. */
export interface ModelFileLocation {
  path: string;
  file: ModelFile;
  model: Pick<ModelVersionRecord, 'id' | 'version'>;
}

/** The bytes of a file, verified with its record. Throws TW_STORAGE_MODEL_DAMAGED. */
export async function readModelFile({ path, file, model }: ModelFileLocation): Promise<Buffer> {
  const damaged = (detail: string) => modelDamaged(model.id, model.version, file.name, detail);
  const bytes = await onDisk(dirname(path), () =>
    readFile(path).catch((error: NodeJS.ErrnoException) => {
      throw error.code === 'ENOENT' ? damaged('it is missing') : error;
    }),
  );
  if (bytes.length !== file.bytes)
    throw damaged(`it has ${bytes.length} bytes, but ${file.bytes} were written`);
  if (crc32(bytes) !== file.crc32) throw damaged('its checksum is not that of what was written');
  return bytes;
}

/** Number of newest versions of a model that are kept, besides the best ones. */
const KEPT_VERSIONS = 5;

/** All versions of a model, the latest first. */
export function versionsOf({ former = [], ...latest }: ModelRecord): ModelVersionRecord[] {
  return [latest, ...former.map((version) => ({ ...modelIdentity(latest), ...version }))];
}

/** The record of a model with these versions: at least one, the latest first. */
export function modelRecordOf([latest, ...former]: ModelVersionRecord[]): ModelRecord {
  return { ...latest, former: former.map(({ id, model, collection, grid, geocode, ...version }) => version) };
}

function modelIdentity({ id, model, collection, grid, geocode }: ModelVersionRecord) {
  return { id, model, collection, grid, geocode };
}

/**
 * The version with the least error among those that were scored on the same data as the latest; the newer of two equal ones. The latest if
 * it has no score. `versions` has the latest first.
 */
export function bestVersion<T extends Pick<TrainedVersion, 'score'>>(versions: T[]): T {
  const [latest] = versions;
  const isBetter = (one: T, other: T) =>
    one.score !== undefined && one.score.data === other.score?.data && one.score.error < other.score.error;
  return versions.reduce((best, one) => (isBetter(one, best) ? one : best), latest!);
}

/** The version with this name, or the current `latest` or `best` one. */
export function versionNamed(model: ModelRecord, name: string): ModelVersionRecord | undefined {
  const versions = versionsOf(model);
  if (name === 'latest') return versions[0];
  return name === 'best' ? bestVersion(versions) : versions.find(({ version }) => version === name);
}

/**
 * The versions that are kept: the newest, the best, and the best before the latest, from which the job that made the latest may
 * start models of other cells. `versions` has the latest first.
 */
function keptVersions<T extends Pick<TrainedVersion, 'score'>>(versions: T[]): T[] {
  const best = [versions, versions.slice(1)].filter(({ length }) => length > 0).map(bestVersion);
  return versions.filter((version, i) => i < KEPT_VERSIONS || best.includes(version));
}

/** A version of a model without the members that follow from its files. */
export type NewModel = Omit<ModelVersionRecord, 'id' | 'files' | 'createdAt'>;

export class ModelStore {
  constructor(
    private readonly folder: DataFolder,
    private readonly locks: () => LockManager,
    /** Fetches files from the object store; undefined outside of a cluster. */
    private readonly fetcher: () => Fetcher | undefined,
  ) {}

  get(id: string): Promise<ModelRecord | undefined> {
    return this.folder.catalogue.models.get(id);
  }

  /** Like `get`, but returns the error of a damaged record. */
  async scan(id: string): Promise<ScanResult<ModelRecord> | undefined> {
    const [scanned] = await this.folder.catalogue.models.scanMany([id]);
    return scanned;
  }

  /** All models in the order of their ids, or at most `limit` after the id `after`; continues after a damaged record. */
  scanAll(
    range: { after?: string | undefined; limit?: number } = {},
  ): AsyncGenerator<ScanResult<ModelRecord>> {
    return this.folder.catalogue.models.scan(range);
  }

  /** Absolute path of one file of a model. Throws TW_STORAGE_BAD_NAME. */
  path(model: ModelVersion, name: string): string {
    return join(this.folder.dir, modelFile(model, name));
  }

  /**
   * Fetches a file of a model from the object store if it is not at its path. Readers verify it with the returned record. Throws the
   * TW_STORE_ errors, and TW_STORAGE_MODEL_DAMAGED if the model has no such file.
   */
  async ensureFile(model: ModelVersionRecord, name: string): Promise<ModelFileLocation> {
    const { id, version } = model;
    const file = model.files.find((one) => one.name === name);
    if (!file) throw modelDamaged(id, version, name, 'its record names no such file');
    await this.fetcher()?.ensureModelFile(model, file);
    return { path: this.path(model, name), file, model: { id, version } };
  }

  /** The verified bytes of a file of a model. Throws the same errors as `ensureFile`. */
  async readFile(model: ModelVersionRecord, name: string): Promise<Buffer> {
    return readModelFile(await this.ensureFile(model, name));
  }

  /**
   * Stores a new version of a model with its files. It becomes the latest; `keptVersions` decides which others stay. `model.version`
   * must be new (`newVersion`). Durable when it resolves; atomic.
   */
  async put(model: NewModel, files: Record<string, Uint8Array>): Promise<ModelRecord> {
    const { dir, catalogue } = this.folder;
    const folder = modelFolder(model);
    const latest: ModelVersionRecord = {
      ...model,
      id: modelId(model.model, model.collection, model.grid, model.geocode),
      createdAt: Date.now(),
      files: Object.entries(files).map(([name, bytes]) => ({
        name: checkedName('file name', name),
        bytes: bytes.byteLength,
        crc32: crc32(bytes),
      })),
    };
    return withLock(this.locks().lockShared(), async (lock) => {
      const staged = new StagedVersions(dir, catalogue, lock);
      let record: ModelRecord | undefined;
      try {
        await staged.plan([folder]);
        const staging = await staged.stage(folder);
        await onDisk(dir, async () => {
          for (const [name, bytes] of Object.entries(files))
            await staged.writeFile(join(staging, name), bytes);
        });
        await staged.publish([folder]);
        await staged.commit([folder], async () => {
          const former = (await this.scan(latest.id))?.record;
          // A damaged record names no version: it is replaced.
          const versions = [latest, ...(former ? versionsOf(former) : [])];
          const kept = keptVersions(versions);
          record = modelRecordOf(kept);
          return versionsChange(latest.id, versions, kept);
        });
      } catch (error) {
        await staged.discard();
        throw error;
      }
      return record!;
    });
  }

  /**
   * Deletes all versions of a model, or the named one; then the newest remaining version is the latest. Returns the number of deleted
   * versions, 0 if the record of the model is damaged. Throws TW_STORAGE_NO_MODEL, TW_STORAGE_NO_MODEL_VERSION.
   */
  delete(id: string, version?: string): Promise<number> {
    return withLock(this.locks().lockShared(), async (lock) => {
      let deleted = 0;
      await lock.commit(async () => {
        const scanned = await this.scan(id);
        if (!scanned) throw modelNotFound(id);
        // A damaged record can only be deleted with all versions. Its files stay, and `verify` lists them.
        if (!scanned.record && version === undefined)
          return { edits: [{ table: 'models', key: id, record: null }] };
        if (!scanned.record) throw scanned.error;
        const versions = versionsOf(scanned.record);
        const kept = version === undefined ? [] : versions.filter((one) => one.version !== version);
        deleted = versions.length - kept.length;
        if (deleted === 0) throw modelVersionNotFound(id, version!);
        return versionsChange(id, versions, kept);
      });
      return deleted;
    });
  }
}

/** The commit after which a model has only the versions `kept`; without any, the model is deleted. */
function versionsChange(id: string, versions: ModelVersionRecord[], kept: ModelVersionRecord[]): Commit {
  return {
    edits: [{ table: 'models', key: id, record: kept.length > 0 ? modelRecordOf(kept) : null }],
    formerModels: versions
      .filter((version) => !kept.includes(version))
      .map(({ model, collection, grid, geocode, version }) => ({
        model,
        collection,
        grid,
        geocode,
        version,
      })),
  };
}
