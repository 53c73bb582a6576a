/** Converts coordinates of cells to those of a scene, even across the antimeridian and around the poles. */
import { type Grid, geohash, quadtile } from '../../grid/index.js';
import {
  type Crs,
  createTransform,
  mapToPixel,
  type PointTransform,
  pixelToMap,
  type RasterHeader,
} from '../../raster/index.js';

/** Georeferencing and size of a raster. */
export type GeoBox = Pick<RasterHeader, 'crs' | 'transform' | 'width' | 'height'>;

/**
 * The projection from grid coordinates to a raster's own system. If that system repeats in x (degrees of longitude,
 * cylindrical maps), x is shifted by full turns of the Earth into [middle - half a turn, middle + half a turn) of the raster,
 * so that rasters from 0 to 360 degrees, or from 179 to 181, are reached from both sides.
 */
export function gridToSourceTransform(gridEpsg: Grid['epsg'], position: GeoBox): PointTransform {
  const { crs, transform, width, height } = position;
  const project = createTransform(`EPSG:${gridEpsg}`, crs);
  const turn = wrapPeriod(crs);
  if (turn === undefined) return extendPastEdge(project, gridEpsg);
  const [middle] = pixelToMap(transform, width / 2, height / 2);
  const start = middle - turn / 2;
  return extendPastEdge((x, y) => {
    const [u, v] = project(x, y);
    return [u + turn * Math.ceil((start - u) / turn), v];
  }, gridEpsg);
}

/** Converts a point in grid coordinates to a position in a raster, in pixels. */
export function gridToPixelTransform(gridEpsg: Grid['epsg'], position: GeoBox): PointTransform {
  const project = gridToSourceTransform(gridEpsg, position);
  return (x, y) => mapToPixel(position.transform, ...project(x, y));
}

/**
 * Continues a projection beyond the eastern and southern edges of the grid by point reflection through the edge. Points of
 * control grids lie there, and would otherwise jump to the other side of the map.
 */
function extendPastEdge(project: PointTransform, gridEpsg: Grid['epsg']): PointTransform {
  const { east, south } = (gridEpsg === geohash.epsg ? geohash : quadtile).extent;
  return (x, y) => {
    if (x < east && y >= south) return project(x, y);
    const edgeX = x < east ? x : east - EDGE_EPSILON * east;
    const edgeY = y < south ? south : y;
    const [u, v] = project(edgeX, edgeY);
    const [s, t] = project(2 * edgeX - x, 2 * edgeY - y);
    return [2 * u - s, 2 * v - t];
  };
}

/** On the edge itself, a projection may return either side. */
const EDGE_EPSILON = 1e-12;

const CYLINDRICAL = /\+proj=(merc|eqc|cea|mill)\b/;

/** The length of x in one turn around the Earth; undefined if the system does not repeat. */
function wrapPeriod(crs: Crs): number | undefined {
  if (crs.geographic) return 360;
  if (!CYLINDRICAL.test(crs.proj4)) return undefined;
  const lon0 = Number(/\+lon_0=(\S+)/.exec(crs.proj4)?.[1] ?? 0);
  const project = createTransform('EPSG:4326', crs);
  return 4 * (project(lon0 + 45, 0)[0] - project(lon0 - 45, 0)[0]);
}
