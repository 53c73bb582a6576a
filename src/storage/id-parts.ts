/** Reading a tile's id as collection, scene, cell and suffix. */
import { grids } from '../geocode/index.js';

/** One way to read an id as `<collection>_<scene>_<grid letter><geocode><suffix>`. */
export interface IdParts {
  /** The cell: code of the grid, key and precision of the geocode. */
  grid: number;
  key: number;
  precision: number;
  /** Both names may contain underscores, so each underscore may separate them. */
  names: { collection: string; scene: string }[];
  /** Empty, or begins with an underscore. */
  suffix: string;
}

/** All ways to read an id. Names may contain words that look like cells, so each word is tried as the cell, the last one first. */
export function partsOf(id: string): IdParts[] {
  const found: IdParts[] = [];
  for (let end = id.length; end > 0; ) {
    const at = id.lastIndexOf('_', end - 1);
    if (at < 0) break;
    const grid = grids.findIndex(({ letter }) => letter === id[at + 1]);
    const geocode = grid < 0 ? '' : id.slice(at + 2, end);
    if (grid >= 0 && grids[grid].accepts(geocode))
      found.push({
        grid,
        key: grids[grid].key(geocode).key,
        precision: geocode.length,
        names: splits(id.slice(0, at)),
        suffix: id.slice(end),
      });
    end = at;
  }
  return found;
}

function splits(text: string): IdParts['names'] {
  const found: IdParts['names'] = [];
  for (let at = text.indexOf('_'); at >= 0; at = text.indexOf('_', at + 1))
    found.push({ collection: text.slice(0, at), scene: text.slice(at + 1) });
  return found;
}
