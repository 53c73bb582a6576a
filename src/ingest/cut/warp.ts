/** Cuts one band group of one cell, and its mask, out of the source rows in memory. */
import { gridByName } from '../../grid/index.js';
import {
  allocatePixels,
  applyQualityLookup,
  buildControlGrid,
  type ControlGrid,
  coveragePercent,
  initialMask,
  maskHistogram,
  type PixelArray,
  type Resampling,
  viewPixels,
  warp,
  warpMasked,
} from '../../raster/index.js';
import { type GeoBox, gridToSourceTransform } from '../georeferencing.js';
import type { CellGroup, SourceRows, WarpTask } from './tasks.js';

export interface WarpedGroup {
  bands: PixelArray[];
  /** Percent of the cell's pixels with data, for each band. */
  validPercent: number[];
  /** Percent of the pixels with data in every band. */
  coverage: number;
  /** 0 if a band holds no data. */
  valid: Uint8Array;
  /** Mask codes of the group's size, if the task requests a mask. */
  mask: Uint8Array | null;
}

/** Null if no band holds a valid pixel in the cell. */
export function warpGroup(task: WarpTask): WarpedGroup | null {
  const { cell, sources, mask } = task;
  const own = sources[task.source];
  const size = cell.width * cell.height;
  const controls = new Map<string, ControlGrid>();
  const controlAt = (source: SourceRows) => {
    const { crs, transform, width, height } = source;
    const position = JSON.stringify([crs.proj4, transform, width, height]);
    const known = controls.get(position) ?? controlGridOf(cell, source);
    controls.set(position, known);
    return known;
  };
  const control = controlAt(own);
  const valid = new Uint8Array(size).fill(1);
  const bands: PixelArray[] = [];
  const counts = own.offsets.map((_, band) => {
    const out = allocatePixels(cell.dataType, size);
    bands.push(out);
    return warpBand(cell.resampling, own, band, control, out, valid);
  });
  if (counts.every((count) => count === 0)) return null;
  const validPercent = counts.map((count) => (100 * count) / size);
  // Most cells are complete, and need no count.
  const coverage = counts.every((count) => count === size) ? 100 : coveragePercent(maskHistogram(valid));
  return {
    bands,
    validPercent,
    coverage,
    valid,
    mask: mask && computeMaskCodes(sources, mask, controlAt, valid),
  };
}

export function controlGridOf(
  { grid, geocode, width, height }: Pick<CellGroup, 'grid' | 'geocode' | 'width' | 'height'>,
  source: GeoBox,
): ControlGrid {
  const cells = gridByName(grid);
  const target = { bounds: cells.bounds(geocode), width, height };
  return buildControlGrid(target, gridToSourceTransform(cells.epsg, source), source.transform, source);
}

/** Returns the number of pixels with data. */
function warpBand(
  resampling: Resampling,
  source: SourceRows,
  band: number,
  control: ControlGrid,
  out: PixelArray,
  valid: Uint8Array,
): number {
  const { dataType, buffer, offsets, width, height, rowStart, rowEnd, nodata, validity } = source;
  const rows = rowEnd - rowStart;
  const window = {
    pixels: viewPixels(dataType, buffer, offsets[band], rows * width),
    window: { column: 0, row: rowStart, width, height: rows },
    rasterWidth: width,
    rasterHeight: height,
    nodata: nodata ?? undefined,
  };
  const marks = validity[band];
  if (!marks) return warp(resampling, window, control, out, valid);
  const holds = viewPixels(marks.dataType, buffer, marks.offset, rows * width);
  return warpMasked(resampling, window, holds, control, out, valid);
}

/**
 * 0 if a band of the group holds no data; otherwise the code of the first quality band with information, or 255 if there is
 * none.
 */
export function computeMaskCodes(
  sources: SourceRows[],
  mask: NonNullable<WarpTask['mask']>,
  controlAt: (source: SourceRows) => ControlGrid,
  valid: Uint8Array,
): Uint8Array {
  const codes = initialMask(valid);
  for (const { source, band, codes: table } of mask) {
    const stored = allocatePixels(sources[source].dataType, valid.length) as Uint8Array | Uint16Array;
    const known = new Uint8Array(valid.length).fill(1);
    warpBand('nearest', sources[source], band, controlAt(sources[source]), stored, known);
    applyQualityLookup(stored, known, table, codes);
  }
  return codes;
}
