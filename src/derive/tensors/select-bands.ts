/** The planes of a tensor by what is asked for: names of bands, or expressions over them. */
import { badExpression, parseBandOrExpression, resolveBands, unknownBand } from '../../expressions/index.js';
import type { TileRecord } from '../../storage/index.js';
import type { TensorBand } from '../derive-tasks.js';

/** A band that stands for another one, which the tiles of a collection lack. */
export interface BandSubstitute {
  collection: string;
  asked: string;
  taken: string;
}

/** What is asked for, in the words of the tiles of one cell: `<collection>/<name>` is one only where there is such a collection. */
export interface BandRequest {
  text: string;
  /** Undefined for all. */
  collection: string | undefined;
}

export function parseBandRequests(asked: string, tiles: TileRecord[]): BandRequest {
  const [, collection, text] = /^\s*([^/\s]+)\/(.+)$/.exec(asked) ?? [];
  const isNamed = collection !== undefined && tiles.some((tile) => tile.collection === collection);
  return isNamed ? { text: text.trim(), collection } : { text: asked.trim(), collection: undefined };
}

/** A plane of a tile, and the bands that stand for others in it; null where the tile lacks a band. Throws TW_IMAGERY_EXPRESSION. */
export function resolveBandRequest(
  tile: TileRecord,
  { text, collection }: BandRequest,
): { plane: TensorBand; substitutes: BandSubstitute[] } | null {
  if (collection !== undefined && collection !== tile.collection) return null;
  try {
    const {
      programs,
      indices,
      substitutes: instead,
    } = resolveBands([parseBandOrExpression(text, tile.groups)], tile.groups);
    if (indices.length === 0) throw badExpression(0, 'it names no band');
    const substitutes = instead.map((one) => ({ collection: tile.collection, ...one }));
    return { plane: { program: programs[0], places: indices }, substitutes };
  } catch (error) {
    if (unknownBand.is(error)) return null;
    throw error;
  }
}
