/** Looks at an input before it is known what it is. */
import { open, readdir, stat } from 'node:fs/promises';
import {
  type Container,
  type FileKind,
  fileKind,
  openContainer,
  openRaster,
  type RasterHeader,
  SIGNATURE_BYTES,
} from '../../../raster/index.js';
import { NOTHING_THERE, notRecognised } from '../../errors.js';
import type { Candidate } from '../../scene.js';

/** Throws TW_INGEST_NOT_RECOGNISED where nothing is there, or what is no file and no folder. */
export async function candidateAt(path: string): Promise<Candidate> {
  const opened = { header: once(() => openRaster(path)), container: once(() => openContainer(path)) };
  try {
    const info = await stat(path);
    if (!info.isDirectory() && !info.isFile()) throw new Error('it is a pipe or a device');
    if (!info.isDirectory()) return { path, kind: await kindOf(path), entries: null, ...opened };
    const entries = await readdir(path, { withFileTypes: true });
    const names = entries.map((entry) => (entry.isDirectory() ? `${entry.name}/` : entry.name));
    return { path, kind: null, entries: names.sort(), ...opened };
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    throw notRecognised.because(error, path, code === 'ENOENT' ? NOTHING_THERE : message);
  }
}

async function kindOf(path: string): Promise<FileKind | null> {
  const file = await open(path);
  try {
    const start = Buffer.alloc(SIGNATURE_BYTES);
    const { bytesRead } = await file.read(start, 0, start.length, 0);
    return fileKind(start.subarray(0, bytesRead));
  } finally {
    await file.close();
  }
}

function once<T>(work: () => Promise<T>): () => Promise<T> {
  let result: Promise<T> | undefined;
  return () => {
    result ??= work();
    return result;
  };
}

/** True if the header of the candidate passes `test`. A raster that cannot be opened passes none. */
export async function isRaster(
  { header }: Candidate,
  test: (header: RasterHeader) => boolean,
): Promise<boolean> {
  // The last format opens the raster again and reports the error.
  const found = await header().catch(() => null);
  return found !== null && test(found);
}

/** The layers and metadata of an HDF5 file; null for other files, and for one that cannot be opened. */
export async function hdf5Container({ kind, container }: Candidate): Promise<Container | null> {
  if (kind !== 'hdf5') return null;
  // The format of all HDF5 files opens the file again and reports the error.
  return container().catch(() => null);
}
