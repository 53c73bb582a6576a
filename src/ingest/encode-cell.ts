/** Makes the files of one cell, and says what its records need to know of them. */
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
  isSpectrum,
  Mask,
  newPixels,
  spectralTags,
} from '../raster/index.js';
import type { GroupRecord } from '../storage/index.js';
import type { GroupPixels } from './cut.js';
import type { CellFile, CellGroup, CutResult, MaskResult } from './tasks.js';

/** The group and, where there is one, the mask. */
export function encodeCell(cell: CellGroup, pixels: GroupPixels): CutResult {
  return {
    file: encodeGroup(cell, pixels),
    coverage: pixels.coverage,
    mask: pixels.mask && encodeMask(cell, pixels.mask),
  };
}

/** A group without any data, and a mask that says so. */
export function encodeBlank(cell: CellGroup, withMask: boolean): CutResult {
  const size = cell.width * cell.height;
  const empty = emptyPixel(cell.dataType, cell.nodata ?? undefined);
  const bands = cell.bands.map(() => newPixels(cell.dataType, size).fill(empty));
  const validPercent = cell.bands.map(() => 0);
  const valid = new Uint8Array(size);
  return encodeCell(cell, { bands, validPercent, coverage: 0, valid, mask: withMask ? valid : null });
}

function encodeGroup(cell: CellGroup, { bands, validPercent, coverage, valid }: GroupPixels): CellFile {
  const { name, role, dataType, width, height, nodata } = cell;
  // Spectra are cut by nearest neighbour so that they stay measured ones; their mean is a spectrum, too.
  const isCodes = cell.resampling === 'nearest' && !isSpectrum(cell.bands);
  const image = {
    width,
    height,
    dataType,
    bands,
    nodata: nodata ?? undefined,
    // Where every value means something, none says "no data"; floating point has NaN for it.
    mask: nodata === null && coverage < 100 && !dataType.startsWith('float') ? valid : undefined,
    colours: cell.colours,
    rgb: isPicture(cell),
    bandTags: cell.bands.map(({ name, commonName: _, ...tags }) => ({ description: name, ...tags })),
    overviews: isCodes ? ('nearest' as const) : ('mean' as const),
  };
  return encodeFile(cell, image, {
    name,
    role,
    dataType,
    width,
    height,
    nodata,
    ...(role === 'data' && isCodes && { codes: true as const }),
    bands: cell.bands.map(({ name, commonName, scale, offset, ...tags }, i) => ({
      name,
      ...(commonName && { commonName }),
      scale,
      offset,
      ...spectralTags(tags),
      validPercent: validPercent[i],
    })),
  });
}

/** Whether its first bands are a picture as every program shows it: bytes of red, green and blue. */
function isPicture({ dataType, bands }: CellGroup): boolean {
  return dataType === 'uint8' && ['red', 'green', 'blue'].every((name, i) => bands[i]?.commonName === name);
}

/** Mask codes of the size of the cell's group. */
export function encodeMask(cell: CellGroup, codes: Uint8Array): MaskResult {
  const { width, height } = cell;
  const histogram = histogramOf(codes);
  const image = {
    width,
    height,
    dataType: 'uint8' as const,
    bands: [codes],
    nodata: Mask.nodata,
    bandTags: [{ description: 'mask' }],
    overviews: 'nearest' as const,
  };
  const file = encodeFile(cell, image, {
    name: 'mask',
    role: 'mask',
    dataType: 'uint8',
    width,
    height,
    nodata: Mask.nodata,
    bands: [{ name: 'mask', scale: 1, offset: 0, validPercent: coverageOf(histogram) }],
  });
  return { file, cloudCover: cloudCoverOf(histogram), footprint: footprintOf(cell, codes) };
}

function footprintOf({ grid, geocode, width, height }: CellGroup, codes: Uint8Array): [number, number][] {
  const { west, south, east, north } = gridByName(grid).bounds(geocode);
  return (hullOf(codes, width, height) ?? []).map(([column, row]) => [
    west + ((east - west) * column) / width,
    north - ((north - south) * row) / height,
  ]);
}

function encodeFile(
  { grid, geocode, metadata }: CellGroup,
  image: Omit<CogImage, 'transform' | 'epsg' | 'metadata'>,
  record: Omit<GroupRecord, 'bytes' | 'crc32'>,
): CellFile {
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
  // Small buffers lie in one that Node shares out, which cannot move to another thread.
  const own = file.buffer instanceof ArrayBuffer && file.byteLength === file.buffer.byteLength;
  const bytes = own ? new Uint8Array(file.buffer as ArrayBuffer) : Uint8Array.from(file);
  return { bytes, record: { ...record, bytes: bytes.length, crc32: crc32(bytes) } };
}
