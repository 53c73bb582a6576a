/** Resolves the requested planes of a tensor: names of bands, or expressions over them. */
import { badExpression, parseBandOrExpression, resolveBands, unknownBand } from '../../expressions/index.js';
import type { TileRecord } from '../../storage/index.js';
import type { TensorBand } from '../derive-tasks.js';

/** A band that replaces another one, which the tiles of a collection lack. */
export interface BandSubstitute {
  collection: string;
  asked: string;
  taken: string;
}

/** A requested plane. `<collection>/<name>` names a collection only if the cell has tiles of that collection. */
export interface BandRequest {
  text: string;
  /** Undefined for all collections. */
  collection: string | undefined;
}

export function parseBandRequests(asked: string, tiles: TileRecord[]): BandRequest {
  const [, collection, text] = /^\s*([^/\s]+)\/(.+)$/.exec(asked) ?? [];
  const isNamed = collection !== undefined && tiles.some((tile) => tile.collection === collection);
  return isNamed ? { text: text.trim(), collection } : { text: asked.trim(), collection: undefined };
}

/** Returns the plane of a tile with its substituted bands, or null if the tile lacks a band. Throws TW_IMAGERY_EXPRESSION. */
export function resolveBandRequest(
  tile: TileRecord,
  { text, collection }: BandRequest,
): { plane: TensorBand; substitutes: BandSubstitute[] } | null {
  if (collection !== undefined && collection !== tile.collection) return null;
  try {
    const resolved = resolveBands([parseBandOrExpression(text, tile.groups)], tile.groups);
    const { programs, indices } = resolved;
    if (indices.length === 0) throw badExpression(0, 'it names no band');
    const substitutes = resolved.substitutes.map((one) => ({ collection: tile.collection, ...one }));
    return { plane: { program: programs[0], places: indices }, substitutes };
  } catch (error) {
    if (unknownBand.is(error)) return null;
    throw error;
  }
}
