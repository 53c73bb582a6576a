/** Writes the files of one cell, and says what its records need to know of them. */
import { closeSync, fsyncSync, openSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import { gridByName } from '../geocode/index.js';
import {
  type CogImage,
  cloudCoverOf,
  coverageOf,
  emptyPixel,
  encodeCog,
  histogramOf,
  hullOf,
  Mask,
  newPixels,
} from '../raster/index.js';
import { asStorageError, type GroupRecord } from '../storage/index.js';
import type { GroupPixels } from './cut.js';
import type { CellGroup, CutResult, MaskResult } from './tasks.js';

/** Writes the group and, where there is one, the mask. */
export function writeCell(cell: CellGroup, pixels: GroupPixels): CutResult {
  return {
    record: writeGroup(cell, pixels),
    coverage: pixels.coverage,
    mask: pixels.mask && writeMask(cell, pixels.mask),
  };
}

/** Writes a group without any data, and a mask that says so. */
export function writeBlank(cell: CellGroup, withMask: boolean): CutResult {
  const size = cell.width * cell.height;
  const empty = emptyPixel(cell.dataType, cell.nodata ?? undefined);
  const bands = cell.bands.map(() => newPixels(cell.dataType, size).fill(empty));
  const validPercent = cell.bands.map(() => 0);
  return writeCell(cell, { bands, validPercent, coverage: 0, mask: withMask ? new Uint8Array(size) : null });
}

function writeGroup(cell: CellGroup, { bands, validPercent }: GroupPixels): GroupRecord {
  const { name, role, dataType, width, height, nodata } = cell;
  const image = {
    width,
    height,
    dataType,
    bands,
    nodata: nodata ?? undefined,
    bandTags: cell.bands.map((band) => ({ description: band.name, scale: band.scale, offset: band.offset })),
    overviews: cell.resampling === 'bilinear' ? ('mean' as const) : ('nearest' as const),
  };
  return {
    name,
    role,
    dataType,
    width,
    height,
    nodata,
    bands: cell.bands.map(({ name, commonName, scale, offset }, i) => ({
      name,
      ...(commonName && { commonName }),
      scale,
      offset,
      validPercent: validPercent[i],
    })),
    ...writeFile(cell, name, image),
  };
}

/** In place of the one that is there, where the mask is assessed anew. */
export function writeMask(cell: CellGroup, codes: Uint8Array): MaskResult {
  const { width, height } = cell;
  const image = {
    width,
    height,
    dataType: 'uint8' as const,
    bands: [codes],
    nodata: Mask.nodata,
    bandTags: [{ description: 'mask' }],
    overviews: 'nearest' as const,
  };
  const record: GroupRecord = {
    name: 'mask',
    role: 'mask',
    dataType: 'uint8',
    width,
    height,
    nodata: Mask.nodata,
    bands: [{ name: 'mask', scale: 1, offset: 0, validPercent: coverageOf(codes) }],
    ...writeFile(cell, 'mask', image),
  };
  return { record, cloudCover: cloudCoverOf(histogramOf(codes)), footprint: footprintOf(cell, codes) };
}

function footprintOf({ grid, geocode, width, height }: CellGroup, codes: Uint8Array): [number, number][] {
  const { west, south, east, north } = gridByName(grid).bounds(geocode);
  return (hullOf(codes, width, height) ?? []).map(([column, row]) => [
    west + ((east - west) * column) / width,
    north - ((north - south) * row) / height,
  ]);
}

/** Writes and syncs one file; the folder's entry is synced when the tile is published. */
function writeFile(
  { grid, geocode, folder, metadata }: CellGroup,
  name: string,
  image: Omit<CogImage, 'transform' | 'epsg' | 'metadata'>,
): { bytes: number; crc32: number } {
  const cells = gridByName(grid);
  const { west, south, east, north } = cells.bounds(geocode);
  const file = encodeCog({
    ...image,
    epsg: cells.epsg,
    transform: {
      originX: west,
      originY: north,
      pixelWidth: (east - west) / image.width,
      pixelHeight: (north - south) / image.height,
    },
    metadata,
  });
  const path = join(folder, `${name}.tif`);
  try {
    const descriptor = openSync(path, 'w');
    try {
      for (let written = 0; written < file.length; ) written += writeSync(descriptor, file, written);
      fsyncSync(descriptor);
    } finally {
      closeSync(descriptor);
    }
  } catch (error) {
    throw asStorageError(error, path);
  }
  return { bytes: file.length, crc32: crc32(file) };
}
