/** An ingest thread: decodes source rows into shared memory, and cuts cells into files. */
import { closeSync, fsyncSync, openSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import { gridByName } from '../geocode/index.js';
import {
  type BandTags,
  type CogImage,
  coverageOf,
  encodeCog,
  Mask,
  type Projection,
  pixelsOf,
  readRows,
  serveTasks,
} from '../raster/index.js';
import { asStorageError, type GroupRecord } from '../storage/index.js';
import { type CellPixels, cutCell } from './cut.js';
import type { DecodeTask } from './row-window.js';
import { sourceProjection } from './source-projection.js';
import type { CutGroup, CutResult, CutTask, IngestTask } from './tasks.js';

serveTasks<IngestTask, CutResult | null>((task) => (task.kind === 'decode' ? decode(task) : cut(task)));

async function decode({ header, bands, rowStart, rowEnd, into, firstRow }: DecodeTask): Promise<null> {
  const arrays = into.map((buffer) =>
    pixelsOf(header.dataType, buffer, 0, (rowEnd - firstRow) * header.width),
  );
  await readRows(header, bands, rowStart, rowEnd, arrays, firstRow);
  return null;
}

function projectionOf(task: CutTask): (group: CutGroup) => Projection {
  const { epsg } = gridByName(task.grid);
  return (group) => sourceProjection(epsg, group);
}

async function cut(task: CutTask): Promise<CutResult | null> {
  const cell = cutCell(task, projectionOf(task));
  if (!cell) return null;
  const { coverage, cloudCover, footprint } = cell;
  return { coverage, cloudCover, footprint, groups: [...writeGroups(task, cell), writeMask(task, cell)] };
}

function writeGroups(task: CutTask, cell: CellPixels): GroupRecord[] {
  return cell.groups.map(({ group, width, height, bands, validPercent }) => {
    const { name, role, dataType, nodata } = group;
    const bandTags = group.bands.map((band) => ({
      description: band.name,
      scale: band.scale,
      offset: band.offset,
    }));
    const overviews = role === 'data' ? 'mean' : 'nearest';
    const image = {
      width,
      height,
      dataType,
      bands,
      nodata: nodata ?? undefined,
      bandTags,
      overviews,
    } as const;
    return {
      name,
      role,
      dataType,
      width,
      height,
      nodata,
      bands: group.bands.map(({ name, commonName, scale, offset }, i) => ({
        name,
        ...(commonName && { commonName }),
        scale,
        offset,
        validPercent: validPercent[i],
      })),
      ...writeFile(task, cell, name, image),
    };
  });
}

function writeMask(task: CutTask, cell: CellPixels): GroupRecord {
  const { width, height, codes } = cell.mask;
  const bandTags: BandTags[] = [{ description: 'mask' }];
  const nodata = Mask.nodata;
  const image = {
    width,
    height,
    dataType: 'uint8' as const,
    bands: [codes],
    nodata,
    bandTags,
    overviews: 'nearest' as const,
  };
  return {
    name: 'mask',
    role: 'mask',
    dataType: 'uint8',
    width,
    height,
    nodata,
    bands: [{ name: 'mask', scale: 1, offset: 0, validPercent: coverageOf(codes) }],
    ...writeFile(task, cell, 'mask', image),
  };
}

/** Writes and syncs one file; the folder's entry is synced when the tile is published. */
function writeFile(
  task: CutTask,
  { bounds }: CellPixels,
  name: string,
  image: Omit<CogImage, 'transform' | 'epsg' | 'metadata'>,
): { bytes: number; crc32: number } {
  const file = encodeCog({
    ...image,
    epsg: gridByName(task.grid).epsg,
    transform: {
      originX: bounds.west,
      originY: bounds.north,
      pixelWidth: (bounds.east - bounds.west) / image.width,
      pixelHeight: (bounds.north - bounds.south) / image.height,
    },
    metadata: task.metadata,
  });
  const path = join(task.folder, `${name}.tif`);
  try {
    const descriptor = openSync(path, 'wx');
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
