/** The regions that are read: blocks of cells near the middle of the scene. */
import { type Bbox, cellBbox, geohash } from '../../src/grid/index.js';
import { type ItemFiles, pointOf } from './item-files.js';

export const PRECISION = 5;
/** Distance of the box from the edges of its cells, degrees, so that it meets no other cell. */
const INSET = 1e-6;

/** The box of `cells` x `cells` cells. */
export function regionOf({ side }: ItemFiles, cells: number): Bbox {
  const middle = cellBbox(geohash, geohash.encode(...pointOf(side, 0.4, 0.5), PRECISION));
  const [width, height] = [middle[2] - middle[0], middle[3] - middle[1]];
  const before = Math.floor((cells - 1) / 2);
  const after = cells - 1 - before;
  return [
    middle[0] - before * width + INSET,
    middle[1] - before * height + INSET,
    middle[2] + after * width - INSET,
    middle[3] + after * height - INSET,
  ];
}
