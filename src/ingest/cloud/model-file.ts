import { openFile } from '../../raster/index.js';
import { badCloudModel, cloudModelUnreadable } from '../errors.js';
import { MAX_MODEL_BYTES } from './lightgbm-model.js';

/** The bytes of a model's file. Throws TW_INGEST_CLOUD_MODEL_UNREADABLE, and TW_INGEST_BAD_CLOUD_MODEL where it is too large. */
export async function readCloudModelFile(path: string): Promise<Buffer> {
  const file = await openFile(path).catch((error) => {
    throw cloudModelUnreadable.because(error, path, error);
  });
  try {
    const status = await file.stat();
    if (!status.isFile()) throw cloudModelUnreadable(path, 'it is a folder');
    const { size } = status;
    if (size > MAX_MODEL_BYTES) throw badCloudModel(path, `${size} bytes are more than ${MAX_MODEL_BYTES}`);
    return await file.readFile();
  } finally {
    await file.close();
  }
}
