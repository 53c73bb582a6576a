/** Counts of the tiles that an analysis reads, and reasons why tiles are left out. */
import { firstReasons, type TileCounts } from '../../jobs/index.js';
import { noTileAnalysed } from '../errors.js';

export const NO_SPECTRUM =
  'they have no group of at least 16 bands with wavelengths (if the files have none, ingest them with --wavelengths)';
export const NO_PIXEL = 'no pixel of them is clear and holds data in every band';

/** Throws TW_ANALYSIS_ALL_FAILED if tiles failed and none was read. */
export function requireTiles(counts: TileCounts): void {
  if (counts.tiles === 0 && counts.failures > 0) throw noTileAnalysed(counts.failures, firstReasons(counts));
}
