/** Which of a place's images shows what it looks like. */
import type { TileRecord } from '../../storage/index.js';

/** What the paper takes: percent of cloud at most, and of the cell at least. */
const CLEAR_PERCENT = { cloud: 5, coverage: 95 };

type Dated = Pick<TileRecord, 'id' | 'start' | 'coverage' | 'cloudCover'>;

/**
 * Of the images that are whole and nearly without cloud, the one nearest to a time (ms since 1970), or the newest; where none is, the one
 * with the most pixels without cloud. An unknown cloud cover counts as none.
 */
export function clearestTile<T extends Dated>(tiles: T[], near = Infinity): T {
  const isWhole = ({ cloudCover, coverage }: T) =>
    (cloudCover ?? 0) <= CLEAR_PERCENT.cloud && coverage >= CLEAR_PERCENT.coverage;
  const fit = tiles.filter(isWhole);
  const use = ({ coverage, cloudCover }: T) => coverage * (100 - (cloudCover ?? 0));
  const away = ({ start }: T) => (near === Infinity ? -start : Math.abs(start - near));
  const [first] = fit.length > 0 ? fit : tiles.toSorted((a, b) => use(b) - use(a));
  const candidates = fit.length > 0 ? fit : tiles.filter((tile) => use(tile) === use(first));
  return candidates.toSorted((a, b) => away(a) - away(b) || (a.id < b.id ? -1 : 1))[0];
}
