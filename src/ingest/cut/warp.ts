/** Cuts one band group of one cell, and its mask, out of the source rows in memory. */
import { gridByName } from '../../grid/index.js';
import {
  allocatePixels,
  applyQualityLookup,
  type BandValidity,
  buildControlGrid,
  type ControlGrid,
  initialMask,
  type PixelArray,
  type Resampling,
  viewPixels,
  warp,
  warpMasked,
} from '../../raster/index.js';
import { type GeoBox, gridToSourceTransform } from '../georeferencing.js';
import type { CellGroup, SourceRows, WarpTask } from './tasks.js';
import { holdsData, packValidity, pixelValidity, tileValidity } from './validity.js';

export interface WarpedGroup {
  bands: PixelArray[];
  /** For each band, the pixels with data. */
  valid: BandValidity[];
}

export interface WarpedFile {
  groups: WarpedGroup[];
  mask: WarpedMask | null;
}

interface WarpedMask {
  /** Index of the group whose pixels the mask has. */
  reference: number;
  codes: Uint8Array;
  /** Percent of the pixels with data in every band of the tile. */
  coverage: number;
}

/** Null if no group holds data in the cell; with a mask, if the tile holds none. */
export function warpFile({ cells, sources, mask }: WarpTask): WarpedFile | null {
  const controlAt = controlGrids(cells[0]!);
  const groups = cells.map((cell, i) => warpGroup(cell, sources[i]!, controlAt));
  if (!mask) return groups.some(({ valid }) => valid.some(holdsData)) ? { groups, mask: null } : null;
  const { reference, quality } = mask;
  const size = cells[reference]!;
  const pixelsOf = (i: number) => pixelValidity(groups[i]!.valid, cells[i]!.bands);
  const others = cells.flatMap((cell, i) =>
    cell.role === 'data' && i !== reference ? [packValidity(cell, pixelsOf(i))] : [],
  );
  const { some, coverage } = tileValidity([...mask.others, ...others], size, pixelsOf(reference));
  if (!holdsData(some)) return null;
  const codes = computeMaskCodes(sources, quality, controlAt, initialMask(some, size.width * size.height));
  return { groups, mask: { reference, codes, coverage } };
}

/** Returns the control grids of a cell, by the position of their source. */
export function controlGrids(cell: CellGroup): (source: GeoBox) => ControlGrid {
  const controls = new Map<string, ControlGrid>();
  return (source) => {
    const { crs, transform, width, height } = source;
    const position = JSON.stringify([crs.proj4, transform, width, height]);
    const existing = controls.get(position) ?? controlGridOf(cell, source);
    controls.set(position, existing);
    return existing;
  };
}

export function warpGroup(
  cell: CellGroup,
  source: SourceRows,
  controlAt: (source: GeoBox) => ControlGrid,
): WarpedGroup {
  const size = cell.width * cell.height;
  const control = controlAt(source);
  const bands: PixelArray[] = [];
  const valid: BandValidity[] = [];
  let complete: Uint8Array | undefined;
  for (const band of source.offsets.keys()) {
    const out = allocatePixels(cell.dataType, size);
    const holds = complete ?? new Uint8Array(size).fill(1);
    const count = warpBand(cell.resampling, source, band, control, out, holds);
    bands.push(out);
    valid.push(count === size ? null : holds);
    // A complete band leaves all ones for the next one.
    complete = count === size ? holds : undefined;
  }
  return { bands, valid };
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

/** Gives each pixel of an initial mask that holds data the code of the first quality band that has information. */
export function computeMaskCodes(
  sources: SourceRows[],
  quality: NonNullable<WarpTask['mask']>['quality'],
  controlAt: (source: SourceRows) => ControlGrid,
  codes: Uint8Array,
): Uint8Array {
  for (const { source, band, codes: table } of quality) {
    const stored = allocatePixels(sources[source].dataType, codes.length) as Uint8Array | Uint16Array;
    const known = new Uint8Array(codes.length).fill(1);
    warpBand('nearest', sources[source], band, controlAt(sources[source]), stored, known);
    applyQualityLookup(stored, known, table, codes);
  }
  return codes;
}
