/** The extent of a collection on a map: bounds, zoom levels, and the initial view. */
import { type Bbox, cellBbox, type Grid, gridByName, quadtile } from '../../grid/index.js';
import type { CollectionRecord, TileRecord } from '../../storage/index.js';
import { MAX_ZOOM } from '../resampling/index.js';

/** The latitude at which web maps end, degrees. */
const MAX_LATITUDE = 85.0511;
/** Limit of cells in a map tile, each of which needs at least one block of a file. */
const MAX_CELLS = 256;
/** Size of the view for which the initial zoom is chosen. */
const VIEW_SIDE_PX = 512;
const MAP_TILE_SIDE_PX = 256;

const worldWidth = (): number => quadtile.extent.east - quadtile.extent.west;

interface View {
  bounds: Bbox;
  minZoom: number;
  /** The zoom of the finest pixels; larger zooms enlarge them. */
  maxZoom: number;
  /** Centre and zoom of the initial view: the entire extent if it fits, else one tile. */
  center: [lon: number, lat: number, zoom: number];
}

/** `reference`: the tile of the initial view if the extent `bbox` does not fit. */
export function mapView(
  collection: CollectionRecord,
  reference: TileRecord,
  bbox: Bbox,
  minZoom: number,
): View {
  // TileJSON forbids bounds that cross the antimeridian. The centre is computed from the extent, which may cross it.
  const isCrossing = bbox[0] > bbox[2];
  const bounds: Bbox = isCrossing ? [-180, bbox[1], 180, bbox[3]] : bbox;
  const unwrapped: Bbox = isCrossing ? [bbox[0], bbox[1], bbox[2] + 360, bbox[3]] : bbox;
  const finest = Math.max(
    zoomOfFinestPixels(reference),
    zoomOfNominalPixels(collection, (bounds[1] + bounds[3]) / 2),
  );
  const maxZoom = Math.max(minZoom, finest);
  const isTooLarge = zoomOfExtent(unwrapped) < minZoom;
  const shown = isTooLarge ? cellBbox(gridByName(reference.grid), reference.geocode) : unwrapped;
  const [west, south, east, north] = shown;
  const zoom = Math.min(maxZoom, Math.max(minZoom, zoomOfExtent(shown)));
  const middle = (west + east) / 2;
  const longitude = middle > 180 ? middle - 360 : middle;
  return { bounds, minZoom, maxZoom, center: [longitude, (south + north) / 2, zoom] };
}

/**
 * The smallest zoom at which no map tile shows more than 256 cells. Cells are counted at the equator, where a map tile has the most.
 * `share`: the side of the shown area as a multiple of the side of a map tile.
 */
export function smallestZoom({ grid: name, precision }: CollectionRecord, share: number): number {
  const grid: Grid = gridByName(name);
  const { width, height } = grid.cellSize(precision);
  const across = (grid.extent.east - grid.extent.west) / width;
  // A map tile at the equator is as high as it is wide, and the latitudes of a grid in degrees span half of its longitudes.
  const down = grid.epsg === 3857 ? across : (2 * (grid.extent.north - grid.extent.south)) / height;
  for (let zoom = 0; ; zoom++) if (across * down * (share / 2 ** zoom) ** 2 <= MAX_CELLS) return zoom;
}

/** The largest zoom at which an extent fits into a view. */
function zoomOfExtent([west, south, east, north]: Bbox): number {
  const [left, bottom] = quadtile.fromLonLat(west, Math.max(south, -MAX_LATITUDE));
  const [right, top] = quadtile.fromLonLat(east, Math.min(north, MAX_LATITUDE));
  const side = Math.max(right - left, top - bottom);
  return Math.max(0, Math.floor(Math.log2((worldWidth() / side) * (VIEW_SIDE_PX / MAP_TILE_SIDE_PX))));
}

/** The zoom at which the pixels of a map are as fine as the finest pixels of a tile. */
function zoomOfFinestPixels({ grid: name, geocode, groups }: TileRecord): number {
  const grid = gridByName(name);
  const { west, south, east, north } = grid.bounds(geocode);
  const toMap = (x: number, y: number) => quadtile.fromLonLat(...grid.toLonLat(x, y))[0];
  const metres = toMap(east, south) - toMap(west, north);
  return zoomOfPixel(metres / Math.max(...groups.map((group) => group.width)));
}

/** The zoom for the finest nominal pixels of a collection; 0 if these are unknown. */
function zoomOfNominalPixels({ pixelSizes = [] }: CollectionRecord, latitude: number): number {
  const ground = Math.min(...pixelSizes.flat().map(({ x, y }) => Math.max(x, y)));
  return zoomOfPixel(ground / Math.cos((Math.min(Math.abs(latitude), MAX_LATITUDE) * Math.PI) / 180));
}

/** `metres`: size of a pixel in metres of the map, which are shorter on the ground. */
function zoomOfPixel(metres: number): number {
  return Math.min(
    MAX_ZOOM,
    Math.max(0, Math.ceil(Math.log2(worldWidth() / MAP_TILE_SIDE_PX / metres) - 0.1)),
  );
}
