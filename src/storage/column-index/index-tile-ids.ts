/** Parses a tile's id into collection, scene, cell and suffix. */
import { grids } from '../../grid/index.js';

/** One way to parse an id as `<collection>_<scene>_<grid letter><geocode><suffix>`. */
export interface TileIdParts {
  /** The cell: code of the grid, then key and precision of the geocode. */
  grid: number;
  key: number;
  precision: number;
  /** `<collection>_<scene>`. Both may contain underscores, so any of them may separate the two. */
  names: string;
  /** Empty, or begins with an underscore. */
  suffix: string;
}

/**
 * Parses an id so that its cell ends before `end` and as late as possible; returns undefined if this is impossible. Names may
 * contain words that look like cells: for the next alternative, pass the length of the previous `names` as `end`.
 */
export function parseTileId(id: string, end = id.length): TileIdParts | undefined {
  for (let to = end; to > 0; ) {
    const at = id.lastIndexOf('_', to - 1);
    if (at < 0) return undefined;
    const first = id[at + 1];
    const grid = grids.findIndex(({ idPrefix }) => idPrefix === first);
    const geocode = grid < 0 ? '' : id.slice(at + 2, to);
    if (grid >= 0 && grids[grid].accepts(geocode)) {
      const { key } = grids[grid].key(geocode);
      return { grid, key, precision: geocode.length, names: id.slice(0, at), suffix: id.slice(to) };
    }
    to = at;
  }
  return undefined;
}
