import { openFile, readStart } from '../../../raster/index.js';
import { badMetadata } from '../../errors.js';

/** Far above real metadata: the largest tile metadata of Sentinel-2 has about 1 MB. */
const MAX_METADATA_BYTES = 16e6;

/** Reads a metadata file. Throws TW_INGEST_BAD_METADATA if it is too large. */
export async function readMetadataFile(path: string): Promise<Buffer> {
  const bytes = await readMetadataStart(path, MAX_METADATA_BYTES + 1);
  if (bytes.length > MAX_METADATA_BYTES) {
    throw badMetadata(path, `it is larger than the ${MAX_METADATA_BYTES / 1e6} MB that metadata may have`);
  }
  return bytes;
}

/** Reads the first bytes of a file, at most `bytes`. Throws TW_INGEST_BAD_METADATA if it cannot be opened. */
export async function readMetadataStart(path: string, bytes: number): Promise<Buffer> {
  const file = await openFile(path).catch((error) => {
    throw badMetadata.because(error, path, (error as Error).message);
  });
  try {
    return await readStart(file, Math.min((await file.stat()).size, bytes));
  } finally {
    await file.close();
  }
}
