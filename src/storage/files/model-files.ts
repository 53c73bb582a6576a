/** The files of a model as they were written, or an error: nothing is made of one that is damaged. */
import { readFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { crc32 } from 'node:zlib';
import type { ModelFile, ModelVersionRecord } from '../catalogue/records.js';
import { modelDamaged, onDisk } from '../errors.js';

/** One file of a version of a model: where it lies, and what its record says of it. */
export interface ModelFileLocation {
  path: string;
  file: ModelFile;
  model: Pick<ModelVersionRecord, 'id' | 'version'>;
}

/** Its bytes, compared with its record. Throws TW_STORAGE_MODEL_DAMAGED. */
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
