/** Writing the files and the record of a trained model, and deleting it. */
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import type { Commit } from '../catalogue/commit.js';
import type { ModelRecord, ModelVersionRecord } from '../catalogue/records.js';
import { modelNotFound, modelVersionNotFound, onDisk } from '../errors.js';
import { writeFileSynced } from '../files/durable-fs.js';
import { checkedName, modelId } from '../files/names.js';
import { modelFolder } from '../files/paths.js';
import { publishVersions, removeVersions, stageVersion } from '../files/version-folder.js';
import { keptVersions, modelRecordOf, versionsOf } from './model-versions.js';
import type { LockManager } from './write-lock.js';

/** A version of a model without what follows from its files. */
export type NewModel = Omit<ModelVersionRecord, 'id' | 'files' | 'createdAt'>;

/** See `Storage.putModel`. The folder is named by `pending` from before it exists until the record is there. */
export async function writeModel(
  dir: string,
  claims: LockManager,
  model: NewModel,
  files: Record<string, Uint8Array>,
): Promise<ModelRecord> {
  const { catalogue } = claims;
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
  const notPending = catalogue.pending.delete(folder);
  await catalogue.write([catalogue.pending.set(folder, { since: Date.now() })]);
  let record: ModelRecord | undefined;
  try {
    const staging = await stageVersion(dir, folder);
    await onDisk(dir, async () => {
      for (const [name, bytes] of Object.entries(files)) await writeFileSynced(join(staging, name), bytes);
    });
    await publishVersions(dir, [folder]);
    const claim = await claims.lockShared();
    try {
      await claim.upload([folder]);
      await claim.commit(async () => {
        const [known] = await catalogue.models.scanMany([latest.id]);
        // A damaged record names no version: it is replaced.
        const versions = [latest, ...(known?.record ? versionsOf(known.record) : [])];
        const kept = keptVersions(versions);
        record = modelRecordOf(kept);
        return versionsChange(latest.id, versions, kept);
      }, [notPending]);
    } finally {
      await claim.release();
    }
  } catch (error) {
    // As with scenes: after a failed batch only the next open can tell what the files belong to.
    if (catalogue.writeError === undefined) {
      await removeVersions(dir, [folder]);
      await catalogue.write([notPending]);
    }
    throw error;
  }
  return record!;
}

/** See `Storage.deleteModel`. */
export async function deleteModel(claims: LockManager, id: string, version?: string): Promise<number> {
  const claim = await claims.lockShared();
  let deleted = 0;
  try {
    await claim.commit(async () => {
      const [scanned] = await claims.catalogue.models.scanMany([id]);
      if (!scanned) throw modelNotFound(id);
      // A damaged one goes as a whole only. Its files stay, and `verify` lists them.
      if (!scanned.record && version === undefined)
        return { edits: [{ table: 'models', key: id, record: null }] };
      if (!scanned.record) throw scanned.error;
      const versions = versionsOf(scanned.record);
      const kept = version === undefined ? [] : versions.filter((one) => one.version !== version);
      deleted = versions.length - kept.length;
      if (deleted === 0) throw modelVersionNotFound(id, version!);
      return versionsChange(id, versions, kept);
    });
  } finally {
    await claim.release();
  }
  return deleted;
}

/** Of a model's versions those that are kept; without any the model goes. */
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
