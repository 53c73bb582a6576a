/** Selects the image of a cell from which its texture is computed. */
import type { TileRecord } from '../../storage/index.js';

/** Limits of the paper: maximum cloud cover and minimum coverage of the cell, in percent. */
const CLEAR_PERCENT = { cloud: 5, coverage: 95 };

type Dated = Pick<TileRecord, 'id' | 'start' | 'coverage' | 'cloudCover'>;

/**
 * Returns the image nearest to a time (milliseconds since 1970), or the newest, among those with little cloud and full coverage; if there
 * are none, the image with the most cloud-free pixels. An unknown cloud cover counts as 0.
 */
export function clearestTile<T extends Dated>(tiles: T[], near = Infinity): T {
  const isClear = ({ cloudCover, coverage }: T) =>
    (cloudCover ?? 0) <= CLEAR_PERCENT.cloud && coverage >= CLEAR_PERCENT.coverage;
  const clear = tiles.filter(isClear);
  const clearArea = ({ coverage, cloudCover }: T) => coverage * (100 - (cloudCover ?? 0));
  const away = ({ start }: T) => (near === Infinity ? -start : Math.abs(start - near));
  const [first] = clear.length > 0 ? clear : tiles.toSorted((a, b) => clearArea(b) - clearArea(a));
  const candidates = clear.length > 0 ? clear : tiles.filter((tile) => clearArea(tile) === clearArea(first));
  return candidates.toSorted((a, b) => away(a) - away(b) || (a.id < b.id ? -1 : 1))[0];
}
