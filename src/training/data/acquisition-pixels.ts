/** The pixels of one date of a place, and which of them can be used. */
import { Mask } from '../../raster/index.js';
import type { BandName, ModelSpec } from '../models/index.js';

/** One date of a place: reflectances (0-1) and mask codes, row by row from the north-west. NaN marks missing values. */
export interface AcquisitionPixels {
  /** Milliseconds since 1970. */
  time: number;
  width: number;
  height: number;
  /** Those that were read. */
  bands: Partial<Record<BandName, Float32Array>>;
  mask: Uint8Array;
}

/** 1 where a trained model may read its inputs: all that hold data where it removes cloud, else what is clear. */
export function inputMaskOf({ inputs, target }: ModelSpec, date: AcquisitionPixels): Uint8Array {
  return maskWhere(date, inputs, target.kind === 'clear' ? (code) => code !== Mask.nodata : isMeasured);
}

/** 1 where a trained model for an index may read its inputs to make a map: clear, not assessed, or filled by a model or other dates. */
export function mappableMask(date: AcquisitionPixels, names: readonly BandName[]): Uint8Array {
  return maskWhere(date, names, (code) => isMeasured(code) || code === Mask.filled);
}

/** 1 where each band has a value, and the mask knows of nothing in the way. */
export function clearMask(date: AcquisitionPixels, names: readonly BandName[]): Uint8Array {
  return maskWhere(date, names, isMeasured);
}

/** 1 where the mask's code is fit and each band has a value. */
function maskWhere(
  { bands, mask }: AcquisitionPixels,
  names: readonly BandName[],
  fit: (code: number) => boolean,
) {
  const planes = names.map((name) => bands[name]!);
  return mask.map((code, at) => (fit(code) && planes.every((plane) => Number.isFinite(plane[at])) ? 1 : 0));
}

/** True for cloud and its shadow. */
export const isCloudy = (code: number): boolean => code === Mask.cloud || code === Mask.shadow;

/** Clear, or not assessed, and not filled. */
function isMeasured(code: number): boolean {
  return code === Mask.clear || code === Mask.notAssessed;
}
