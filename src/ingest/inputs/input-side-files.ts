/** Finds the files beside a raster that ingest reads together with it. */
import { lstat } from 'node:fs/promises';
import { basename } from 'node:path';
import { maskPath, otherEnviFile, pamPath } from '../../raster/index.js';
import { readItemBesideFile } from '../formats/generic/index.js';
import { probeInput } from '../formats/shared/index.js';
import { isArchiveType } from './find-inputs.js';

/**
 * Paths of the mask file, GDAL's `.aux.xml`, the STAC Item, and the other file of an ENVI image. Empty for a folder, an
 * archive and a missing file. Throws TW_INGEST_BAD_SIDECAR, and TW_RASTER_... for an ENVI header that cannot be read.
 */
export async function sideFilesOf(path: string): Promise<string[]> {
  const candidate = await probeInput(path).catch(() => undefined);
  // The error of an input that cannot be opened is reported when it is sent.
  if (!candidate || candidate.entries || isArchiveType(candidate.fileType)) return [];
  const { fileType } = candidate;
  const envi =
    fileType === null || fileType === 'envi' ? await otherEnviFile(path, fileType === 'envi') : undefined;
  const image = fileType === 'envi' ? (envi ?? path) : path;
  const [mask, pam] = await Promise.all([maskPath(image), pamPath(image)].map(ifFile));
  const item = (await readItemBesideFile(path))?.path;
  const files = [envi, mask, pam, item].filter((file) => file !== undefined);
  // A STAC Item that is itself the input is not beside it.
  return files.filter((file) => basename(file) !== basename(path));
}

/** Ingest does not follow links to these files. */
const ifFile = (path: string) =>
  lstat(path).then(
    (info) => (info.isFile() ? path : undefined),
    () => undefined,
  );
