/** Probes an input whose product is not known yet. */
import { open, readdir, stat } from 'node:fs/promises';
import { messageOf } from '../../errors.js';
import {
  detectFileType,
  type FileType,
  listSubdatasets,
  type MultiDatasetFile,
  openRaster,
  type RasterHeader,
  readStart,
  SIGNATURE_BYTES,
} from '../../raster/index.js';
import { NOTHING_THERE, notRecognised } from '../errors.js';
import type { InputProbe } from '../scene.js';

/** Throws TW_INGEST_NOT_RECOGNISED unless the path is a file or a folder. */
export async function probeInput(path: string): Promise<InputProbe> {
  const opened = {
    header: memoize(() => openRaster(path)),
    subdatasets: memoize(() => listSubdatasets(path)),
  };
  try {
    const info = await stat(path);
    if (!info.isDirectory() && !info.isFile()) throw new Error('it is a pipe or a device');
    if (!info.isDirectory()) return { path, fileType: await detectInputType(path), entries: null, ...opened };
    const entries = await readdir(path, { withFileTypes: true });
    const names = entries.map((entry) => (entry.isDirectory() ? `${entry.name}/` : entry.name));
    return { path, fileType: null, entries: names.sort(), ...opened };
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw notRecognised.because(error, path, code === 'ENOENT' ? NOTHING_THERE : messageOf(error));
  }
}

async function detectInputType(path: string): Promise<FileType | null> {
  const file = await open(path);
  try {
    return detectFileType(await readStart(file, SIGNATURE_BYTES));
  } finally {
    await file.close();
  }
}

function memoize<T>(work: () => Promise<T>): () => Promise<T> {
  let result: Promise<T> | undefined;
  return () => {
    result ??= work();
    return result;
  };
}

/** True if the header of the candidate passes `test`. False for a raster that cannot be opened. */
export async function matchesRaster(
  { header }: InputProbe,
  test: (header: RasterHeader) => boolean,
): Promise<boolean> {
  // The last format opens the raster again and reports the error.
  const found = await header().catch(() => null);
  return found !== null && test(found);
}

/** The layers and metadata of an HDF5 file; null for other files, and for one that cannot be opened. */
export async function hdf5Subdatasets({
  fileType,
  subdatasets,
}: InputProbe): Promise<MultiDatasetFile | null> {
  if (fileType !== 'hdf5') return null;
  // The format of all HDF5 files opens the file again and reports the error.
  return subdatasets().catch(() => null);
}
