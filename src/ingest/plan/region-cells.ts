/** Selects the cells of a region, and keeps account of the regions of a scene that were ingested. */
import { type Bbox, cellBbox, type Grid } from '../../grid/index.js';
import { PreparedGeometry } from '../../query/index.js';

/** Returns a function that is true for cells that share more than an edge with a box in degrees. West > east crosses the antimeridian. */
export function regionFilter(grid: Grid, region: Bbox): (geocode: string) => boolean {
  const shape = new PreparedGeometry({ bbox: region });
  const isArea = shape.dimension === 2;
  return (geocode) => shape.intersects(cellBbox(grid, geocode), isArea);
}

/** True if one of the regions contains `wanted`. */
export function isRegionKnown(regions: readonly Bbox[], wanted: Bbox): boolean {
  const [west, , east] = wanted;
  return regions.some((region) => {
    if (region.every((edge, i) => edge === wanted[i])) return true;
    return west < east && new PreparedGeometry({ bbox: region }).covers(wanted);
  });
}

/** A scene without further regions forgets the oldest ones: their cells without data are then read again. */
const MAX_REGIONS = 100;

/** Returns the regions with another one, without those that it contains. */
export function addRegion(regions: readonly Bbox[], added: Bbox): Bbox[] {
  if (isRegionKnown(regions, added)) return [...regions];
  return [...regions.filter((region) => !isRegionKnown([added], region)), added].slice(-MAX_REGIONS);
}
