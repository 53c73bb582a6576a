/** A random sample of the patches of one date, from all ground of the cell. */

import { randomStream, shuffledOrder } from '../../utils/random.js';
import { dilateMask, isCloudy } from '../data/index.js';
import type { ModelSpec } from '../models/index.js';
import type { LabelledImage } from './patch-label-images.js';
import { collectPatches, type Patches, usableOrigins } from './patches.js';

/** Radius around cloud and shadow that the sample excludes, because masks miss thin cloud edges. */
const HAZE_RADIUS_PX = 8;
const SEED = 1;

/**
 * Returns at most `limit` patches without overlap; the same image gives the same patches. Pixels near cloud do not count. The result has
 * no patch if too few pixels are clear.
 */
export function samplePatches(spec: ModelSpec, image: LabelledImage, limit: number): Patches {
  const { width, height, mask, inputMask, targetMask } = image;
  const hazy = dilateMask(
    mask.map((code) => (isCloudy(code) ? 1 : 0)),
    width,
    height,
    HAZE_RADIUS_PX,
  );
  const withoutHaze = (usable: Uint8Array) => usable.map((is, at) => (hazy[at] ? 0 : is));
  const clear = { ...image, inputMask: withoutHaze(inputMask), targetMask: withoutHaze(targetMask) };
  const { patchSize } = spec;
  const origins = usableOrigins([clear], { column: 0, row: 0, width, height }, patchSize, patchSize);
  const chosen = shuffledOrder(origins.length, randomStream(SEED).next).subarray(0, limit).sort();
  return collectPatches(
    spec,
    [clear],
    Array.from(chosen, (i) => origins[i]),
  );
}
