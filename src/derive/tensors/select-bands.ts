/** The planes of a tensor by what is asked for: names of bands, or expressions over them. */
import { badExpression, bandOrExpression, resolveBands, unknownBand } from '../../expressions/index.js';
import type { TileRecord } from '../../storage/index.js';
import type { Plane } from '../derive-tasks.js';

/** A band that stands for another one, which the tiles of a collection lack. */
export interface Substitute {
  collection: string;
  asked: string;
  taken: string;
}

/** What is asked for, in the words of the tiles of one cell: `<collection>/<name>` is one only where there is such a collection. */
export interface Wanted {
  text: string;
  /** Undefined for all. */
  collection: string | undefined;
}

export function wantedOf(asked: string, tiles: TileRecord[]): Wanted {
  const [, collection, text] = /^\s*([^/\s]+)\/(.+)$/.exec(asked) ?? [];
  const isNamed = collection !== undefined && tiles.some((tile) => tile.collection === collection);
  return isNamed ? { text: text.trim(), collection } : { text: asked.trim(), collection: undefined };
}

/** A plane of a tile, and the bands that stand for others in it; null where the tile lacks a band. Throws TW_IMAGERY_EXPRESSION. */
export function planeOf(
  tile: TileRecord,
  { text, collection }: Wanted,
): { plane: Plane; substitutes: Substitute[] } | null {
  if (collection !== undefined && collection !== tile.collection) return null;
  try {
    const { programs, places, instead } = resolveBands([bandOrExpression(text, tile.groups)], tile.groups);
    if (places.length === 0) throw badExpression(0, 'it names no band');
    const substitutes = instead.map((one) => ({ collection: tile.collection, ...one }));
    return { plane: { program: programs[0], places }, substitutes };
  } catch (error) {
    if (unknownBand.is(error)) return null;
    throw error;
  }
}
