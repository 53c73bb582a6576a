/** Chooses the dates from which a place that has drifted is trained again. */
import type { TileRecord } from '../../storage/index.js';

/**
 * Older dates for each date since the change. They show the unchanged ground in other seasons, without which models fail on later dates.
 * The limit keeps a long archive from hiding the change.
 */
const OLDER_PER_NEW = 8;
/** Cloudier older dates add little. */
const MAX_CLOUD_PERCENT = 20;

/**
 * Returns the dates since the change, and older clear ones, spread evenly over their time. `tiles`: from the earliest to the latest;
 * `changed`: the first date of the change, milliseconds since 1970.
 */
export function datesSinceChange<T extends Pick<TileRecord, 'start' | 'cloudCover'>>(
  tiles: T[],
  changed: number,
): T[] {
  const since = tiles.filter(({ start }) => start >= changed);
  const older = tiles.filter(
    ({ start, cloudCover }) => start < changed && (cloudCover ?? 0) <= MAX_CLOUD_PERCENT,
  );
  const wanted = Math.min(older.length, OLDER_PER_NEW * since.length);
  const chosen = Array.from({ length: wanted }, (_, i) => older[Math.floor((i * older.length) / wanted)]);
  return [...chosen, ...since];
}
