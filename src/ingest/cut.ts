/** Cuts one cell out of the source rows in memory: pixels of every band group, the mask, and what they say together. */
import { type Bounds, type Grid, gridByName, pixelGrids } from '../geocode/index.js';
import {
  type Affine,
  applyCodes,
  arrayOver,
  cloudCoverOf,
  controlGrid,
  type ControlGrid,
  Mask,
  outlineOf,
  type PixelArray,
  type Projection,
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
  /** Percent of the pixels that hold data in every band of a data group; the lowest such group. */
  coverage: number;
  /** Percent of the assessed pixels; null where none is assessed. */
  cloudCover: number | null;
  /** Closed ring around the valid pixels, in grid coordinates. */
  footprint: [x: number, y: number][];
}

/** Gives the projection from grid coordinates to a source system; cached by the caller. */
export type Projections = (group: CutGroup) => Projection;

/** Null where no data band holds a valid pixel in the cell. */
export function cutCell(task: CutTask, projections: Projections): CellPixels | null {
  const grid = gridByName(task.grid);
  const bounds = grid.bounds(task.geocode);
  const sizes = pixelGrids(grid, task.geocode, task.groups.map((group) => group.resolution));
  const cell = { grid, bounds };
  let coverage = 100;
  let anyValid = false;
  let maskValid = new Uint8Array(0);
  const groups = task.groups.map((group, g): GroupPixels => {
    const { width, height } = sizes[g];
    const source = sourceOf(cell, group, width, height, projections);
    const all = new Uint8Array(width * height).fill(1);
    const warped = group.bands.map((band) => warpBand(source, group, band, group.role === 'data' ? 'bilinear' : 'nearest', all));
    if (group.role === 'data') {
      coverage = Math.min(coverage, percent(countOnes(all), all.length));
      anyValid ||= warped.some(({ valid }) => valid > 0);
    }
    if (g === task.finest) maskValid = all;
    return {
      group,
      width,
      height,
      bands: warped.map(({ pixels }) => pixels),
      validPercent: warped.map(({ valid }) => percent(valid, width * height)),
    };
  });
  if (!anyValid) return null;
  const mask = { ...sizes[task.finest], codes: maskOf(task, cell, sizes[task.finest], maskValid, projections) };
  return {
    bounds,
    groups,
    mask,
    coverage,
    cloudCover: cloudCoverOf(mask.codes),
    footprint: footprintOf(mask, bounds),
  };
}
