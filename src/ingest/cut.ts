/** Cuts one cell out of the source rows in memory: pixels of every band group, the mask, and what they say together. */
import { type Bounds, gridByName, type PixelGrid, pixelGrids } from '../geocode/index.js';
import {
  assessFrom,
  type ControlGrid,
  cloudCoverOf,
  controlGrid,
  coverageOf,
  histogramOf,
  hullOf,
  newPixels,
  type PixelArray,
  type Projection,
  pixelsOf,
  type Resampling,
  unassessedMask,
  warp,
} from '../raster/index.js';
import type { CutBand, CutGroup, CutTask } from './tasks.js';

export interface GroupPixels {
  group: CutGroup;
  width: number;
  height: number;
  bands: PixelArray[];
  /** Percent of the cell's pixels that hold data, a band each. */
  validPercent: number[];
}

export interface CellPixels {
  bounds: Bounds;
  groups: GroupPixels[];
  mask: { width: number; height: number; codes: Uint8Array };
  /** Percent of the pixels that hold data in every band of a data group; of the lowest such group. */
  coverage: number;
  /** Percent of the assessed pixels; null where none is assessed. */
  cloudCover: number | null;
  /** Closed ring around the valid pixels, in grid coordinates. */
  footprint: [x: number, y: number][];
}

/** The projection from grid coordinates to a group's own system. */
export type ProjectionOf = (group: CutGroup) => Projection;

/** Null where no data band holds a valid pixel in the cell. */
export function cutCell(task: CutTask, projectionOf: ProjectionOf): CellPixels | null {
  const grid = gridByName(task.grid);
  const bounds = grid.bounds(task.geocode);
  const sizes = pixelGrids(
    grid,
    task.geocode,
    task.groups.map((group) => group.resolution),
  );
  const controlOf = (group: CutGroup, size: PixelGrid) =>
    controlGrid({ bounds, ...size }, projectionOf(group), group.transform);

  const groups = task.groups.map((group, g) => cutGroup(group, sizes[g], controlOf(group, sizes[g])));
  const data = groups.filter(({ group }) => group.role === 'data');
  if (data.every(({ validPercent }) => validPercent.every((percent) => percent === 0))) return null;

  const size = sizes[task.finest];
  const codes = maskCodes(task, groups[task.finest].valid, (group) => controlOf(group, size));
  const outline = hullOf(codes, size.width, size.height);
  const toGrid = ([column, row]: [number, number]): [number, number] => [
    bounds.west + ((bounds.east - bounds.west) * column) / size.width,
    bounds.north - ((bounds.north - bounds.south) * row) / size.height,
  ];
  return {
    bounds,
    groups,
    mask: { ...size, codes },
    coverage: Math.min(...data.map(({ valid }) => coverageOf(valid))),
    cloudCover: cloudCoverOf(histogramOf(codes)),
    footprint: (outline ?? []).map(toGrid),
  };
}

/** `valid` is 1 where every band of the group holds data. */
function cutGroup(
  group: CutGroup,
  size: PixelGrid,
  control: ControlGrid,
): GroupPixels & { valid: Uint8Array } {
  const pixels = size.width * size.height;
  const valid = new Uint8Array(pixels).fill(1);
  const bands: PixelArray[] = [];
  const validPercent = group.bands.map((band) => {
    const out = newPixels(group.dataType, pixels);
    bands.push(out);
    return (100 * warpBand(group.resampling, group, band, control, out, valid)) / pixels;
  });
  return { group, ...size, bands, validPercent, valid };
}

function warpBand(
  resampling: Resampling,
  group: CutGroup,
  band: CutBand,
  control: ControlGrid,
  out: PixelArray,
  valid: Uint8Array,
): number {
  const rows = group.rowEnd - group.rowStart;
  const source = {
    pixels: pixelsOf(group.dataType, band.pixels, 0, rows * group.width),
    window: { column: 0, row: group.rowStart, width: group.width, height: rows },
    sceneWidth: group.width,
    sceneHeight: group.height,
    nodata: group.nodata ?? undefined,
  };
  return warp(resampling, source, control, out, valid);
}

/**
 * The mask at the finest data group's size: 0 where one of its bands holds no data, else what the first quality band says that
 * says something, and 255 where none does.
 */
function maskCodes(
  task: CutTask,
  valid: Uint8Array,
  controlOf: (group: CutGroup) => ControlGrid,
): Uint8Array {
  const codes = unassessedMask(valid);
  for (const { group: name, band, codes: table } of task.quality) {
    const group = task.groups.find((one) => one.name === name);
    if (!group) continue;
    const stored = newPixels(group.dataType, valid.length) as Uint8Array | Uint16Array;
    const inside = new Uint8Array(valid.length).fill(1);
    warpBand('nearest', group, group.bands[band], controlOf(group), stored, inside);
    assessFrom(stored, inside, table, codes);
  }
  return codes;
}
