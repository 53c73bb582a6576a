/** What a search asks for. Command-line flags and STAC parameters both become this. */
import type { Bbox } from '../geocode/index.js';
import type { TileSource } from '../storage/index.js';

export interface TileFilter {
  ids?: string[];
  collections?: string[];
  /** Closed: a tile that only touches the box matches. */
  bbox?: Bbox;
  /** Exact, or with `recurse` every cell below it. */
  geocode?: string;
  recurse?: boolean;
  /** Milliseconds, closed; a tile matches where its time range overlaps. Undefined ends are open. */
  start?: number;
  end?: number;
  /** Percent. A tile whose cloud cover is unknown matches no cloud bound. */
  minCloud?: number;
  maxCloud?: number;
  minCoverage?: number;
  source?: TileSource;
  platform?: string;
}
