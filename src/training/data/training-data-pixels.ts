/** Pixels of one date of a cell, and masks of the usable ones. */
import { Mask } from '../../raster/index.js';
import type { BandName, ModelSpec } from '../models/index.js';

/** One date of a cell: reflectances (0-1) and mask codes, row by row from the north-west. NaN marks missing values. */
export interface AcquisitionPixels {
  /** Milliseconds since 1970. */
  time: number;
  width: number;
  height: number;
  /** Only the bands that were read. */
  bands: Partial<Record<BandName, Float32Array>>;
  mask: Uint8Array;
}

/** 1 where training may read the inputs: for cloud removal every pixel with data, otherwise clear pixels. */
export function inputMaskOf({ inputs, target }: ModelSpec, date: AcquisitionPixels): Uint8Array {
  return maskWhere(date, inputs, target.kind === 'clear' ? (code) => code !== Mask.nodata : isMeasured);
}

/** 1 where inference may read the inputs to make a map: clear, not assessed, or filled by a model or from other dates. */
export function mappableMask(date: AcquisitionPixels, names: readonly BandName[]): Uint8Array {
  return maskWhere(date, names, (code) => isMeasured(code) || code === Mask.filled);
}

/** 1 where each band has a value and the mask code is clear or not assessed. */
export function clearMask(date: AcquisitionPixels, names: readonly BandName[]): Uint8Array {
  return maskWhere(date, names, isMeasured);
}

/** 1 where `fits` accepts the mask code and each band has a value. */
function maskWhere(
  { bands, mask }: AcquisitionPixels,
  names: readonly BandName[],
  fits: (code: number) => boolean,
) {
  const planes = names.map((name) => bands[name]!);
  return mask.map((code, at) => (fits(code) && planes.every((plane) => Number.isFinite(plane[at])) ? 1 : 0));
}

/** True for cloud and cloud shadow. */
export const isCloudy = (code: number): boolean => code === Mask.cloud || code === Mask.shadow;

/** True for clear and not assessed. Filled pixels are not measured. */
function isMeasured(code: number): boolean {
  return code === Mask.clear || code === Mask.notAssessed;
}
