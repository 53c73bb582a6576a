/** The files beside a raster that ingest reads with it: they are sent together. */
import { lstat } from 'node:fs/promises';
import { basename } from 'node:path';
import { maskPath, otherEnviFile, pamPath } from '../../raster/index.js';
import { readItemBesideFile } from '../formats/generic/index.js';
import { probeInput } from '../formats/shared/index.js';
import { isArchiveType } from './find-inputs.js';

/**
 * Mask file, GDAL's `.aux.xml`, STAC Item, and the other file of an ENVI image, as paths. A folder, an archive and a missing file have none. Throws
 * TW_INGEST_BAD_SIDECAR, and TW_RASTER_... for an ENVI header that cannot be read.
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
  // A STAC Item that is sent describes itself.
  return files.filter((file) => basename(file) !== basename(path));
}

/** Ingest follows no links to such files. */
const ifFile = (path: string) =>
  lstat(path).then(
    (info) => (info.isFile() ? path : undefined),
    () => undefined,
  );
