/** Labels from the tiles of another collection: codes of the same cell. */

import { searchTilesOfCell } from '../../derive/index.js';
import { bandFile } from '../../imagery/index.js';
import type { TileFinder } from '../../query/index.js';
import { type Storage, type TileRecord, type TileSource, withPinnedTiles } from '../../storage/index.js';
import { noLabelTiles } from '../errors.js';
import type { OpenLabels, TileLabels } from './class-labels.js';

/**
 * Passes the labels of a tile to `work`; labels of another collection are those of the nearest date. Returns undefined if that collection
 * has no tile of the cell. Throws TW_ANALYSIS_LABEL_TILES if none of its tiles of the cell has codes.
 */
export async function withLabels<T>(
  { storage, finder }: { storage: Storage; finder: TileFinder },
  labels: OpenLabels,
  tile: TileRecord,
  work: (labels: TileLabels) => Promise<T>,
): Promise<T | undefined> {
  const { collection } = labels;
  if (collection === undefined) return work(labels);
  const cell = { collection, grid: tile.grid, geocode: tile.geocode };
  const found = await searchTilesOfCell(finder, cell, { op: 'and', args: [] });
  if (found.length === 0) return undefined;
  const withCodes = found.filter((one) => CLASSES.includes(one.source) && groupOfCodes(one) >= 0);
  if (withCodes.length === 0) throw noLabelTiles(found[0].id);
  const nearest = nearestInTime(withCodes, tile.start);
  const group = groupOfCodes(nearest);
  const read = [{ tile: nearest, groups: [nearest.groups[group]] }];
  return withPinnedTiles(storage, read, () =>
    work({ names: labels.names, file: bandFile(storage, nearest, { group, band: 0 }) }),
  );
}

/** Sources whose codes are classes. Codes of other sources number clusters or spectra of a library. */
const CLASSES: TileSource[] = ['raw', 'classify', 'predicted'];

const groupOfCodes = ({ groups }: TileRecord) =>
  groups.findIndex(({ codes, bands }) => codes === true && bands.length === 1);

/** Returns the tile whose start is nearest to `time`; ties go to the lower id. */
function nearestInTime(tiles: readonly TileRecord[], time: number): TileRecord {
  const distance = ({ start }: TileRecord) => Math.abs(start - time);
  return tiles.toSorted((a, b) => distance(a) - distance(b) || (a.id < b.id ? -1 : 1))[0];
}
