/** Reads the files of a model. A damaged file is an error. */
import { readFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { crc32 } from 'node:zlib';
import { modelDamaged } from '../errors.js';
import type { ModelFile, ModelVersionRecord } from '../records/index.js';
import { onDisk } from './disk-errors.js';

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
