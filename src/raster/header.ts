/** Opens rasters, known by their content and not by their names. */
import type { FileHandle } from 'node:fs/promises';
import { TilewrightError } from '../errors.js';
import { noLayer, notTiff, rasterUnreadable, severalLayers } from './errors.js';
import { openWithGdal } from './gdal/header.js';
import { openHdf5Container } from './hdf5/container.js';
import { openHdf5 } from './hdf5/header.js';
import { openFile } from './open-file.js';
import { type FileKind, fileKind, recognise, SIGNATURE_BYTES } from './recognise.js';
import { openTiff } from './tiff-header.js';
import type { RasterHeader } from './types.js';

/**
 * Reads the header of a raster. `layer` names one of a file that holds several (`openContainer` lists them).
 * Throws TW_RASTER_UNREADABLE, _NOT_TIFF, _TRUNCATED, _CORRUPT, _UNSUPPORTED, _NO_CRS, _UNKNOWN_CRS, _NO_LAYER, and
 * for what GDAL reads TW_RASTER_NO_GDAL, _GDAL_FAILED and _GDAL_TIMEOUT.
 */
export async function openRaster(path: string, layer?: string): Promise<RasterHeader> {
  const kind = await rasterKind(path);
  switch (kind) {
    case 'tiff':
      if (layer !== undefined) throw noLayer(path, layer, []);
      return openTiff(path);
    case 'hdf5':
      if (layer === undefined) throw severalLayers(path, await layerNames(path));
      return openHdf5(path, layer);
    default:
      return openWithGdal(path, kind, layer);
  }
}

async function layerNames(path: string): Promise<string[]> {
  return (await openHdf5Container(path)).layers.map(({ name }) => name);
}

/** Kinds of files that hold pixels. */
export type RasterKind = Exclude<FileKind, 'zip' | 'gzip' | 'tar'>;

/** What a file is by its first bytes. Throws TW_RASTER_UNREADABLE and TW_RASTER_NOT_TIFF. */
export async function rasterKind(path: string): Promise<RasterKind> {
  const start = await firstBytes(path);
  const kind = fileKind(start);
  if (kind !== null && kind !== 'zip' && kind !== 'gzip' && kind !== 'tar') return kind;
  const { found, advice } = recognise(start);
  throw notTiff(path, found, advice);
}

async function firstBytes(path: string): Promise<Uint8Array> {
  let file: FileHandle | undefined;
  try {
    file = await openFile(path);
    const status = await file.stat();
    if (status.isDirectory()) throw notTiff(path, 'it is a folder', 'Name a file.');
    const start = new Uint8Array(Math.min(SIGNATURE_BYTES, status.size));
    await file.read(start, 0, start.length, 0);
    return start;
  } catch (error) {
    if (error instanceof TilewrightError) throw error;
    throw rasterUnreadable.because(error, path, error);
  } finally {
    await file?.close();
  }
}
