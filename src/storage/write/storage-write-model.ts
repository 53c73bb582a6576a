/** Trained models: their records, and the files of their versions. */
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import type { Fetcher } from '../cache/index.js';
import type { ScanResult } from '../catalogue/index.js';
import { type Commit, type LockManager, StagedVersions, withLock } from '../commit/index.js';
import type { DataFolder } from '../data-folder/index.js';
import { modelDamaged, modelNotFound, modelVersionNotFound } from '../errors.js';
import {
  checkedName,
  type ModelFileLocation,
  type ModelVersion,
  modelFile,
  modelFolder,
  modelId,
  onDisk,
  readModelFile,
} from '../files/index.js';
import type { ModelRecord, ModelVersionRecord } from '../records/index.js';
import { keptVersions, modelRecordOf, versionsOf } from './storage-write-model-versions.js';

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

  /** All models; continues after a damaged record. */
  scanAll(): AsyncGenerator<ScanResult<ModelRecord>> {
    return this.folder.catalogue.models.scan();
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
