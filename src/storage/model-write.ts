/** Writing the files and the record of a trained model. */
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import type { Claims } from './claims.js';
import type { RecordEdit } from './commit.js';
import { writeSynced } from './durable.js';
import { onDisk } from './errors.js';
import { modelFolder } from './layout.js';
import { checkedName, modelId } from './names.js';
import type { ModelRecord } from './records.js';
import { publishVersions, removeVersions, stageVersion } from './version-folder.js';

/** A model without what follows from its files. */
export type NewModel = Omit<ModelRecord, 'id' | 'files' | 'createdAt'>;

/** See `Storage.putModel`. The folder is named by `pending` from before it exists until the record is there. */
export async function writeModel(
  dir: string,
  claims: Claims,
  model: NewModel,
  files: Record<string, Uint8Array>,
): Promise<ModelRecord> {
  const { catalogue } = claims;
  const folder = modelFolder(model);
  const record: ModelRecord = {
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
  try {
    const staging = await stageVersion(dir, folder);
    await onDisk(dir, async () => {
      for (const [name, bytes] of Object.entries(files)) await writeSynced(join(staging, name), bytes);
    });
    await publishVersions(dir, [folder]);
    const claim = await claims.shared();
    try {
      await claim.store([folder]);
      await claim.commit(async () => {
        const former = await catalogue.models.get(record.id);
        const edits: RecordEdit[] = [{ table: 'models', key: record.id, record }];
        return { edits, formerModels: former ? [former] : [] };
      }, [notPending]);
    } finally {
      await claim.release();
    }
  } catch (error) {
    // As with scenes: after a failed batch only the next open can tell what the files belong to.
    if (!catalogue.failed) {
      await removeVersions(dir, [folder]);
      await catalogue.write([notPending]);
    }
    throw error;
  }
  return record;
}
