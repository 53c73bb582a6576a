/** Selects the cells of a region, and keeps account of the regions of a scene that were ingested. */
import { type Bbox, cellBbox, type Grid, type GridBounds, type Relation } from '../../grid/index.js';
import { PreparedGeometry } from '../../query/index.js';

/** Returns a function that is true for cells that share more than an edge with a box in degrees. West > east crosses the antimeridian. */
export function regionFilter(grid: Grid, region: Bbox): (geocode: string) => boolean {
  const shape = new PreparedGeometry({ bbox: region });
  const isArea = shape.dimension === 2;
  return (geocode) => shape.intersects(cellBbox(grid, geocode), isArea);
}

/** A cell is a little larger here than its bounds, so that rounding loses none; `regionFilter` decides. */
const EDGE_DEGREES = 1e-9;

type Relate = (rect: GridBounds, closest: boolean) => Relation;

/** Limits a relation to rectangles for `coverRegionByRelation`: cells and larger rectangles beside a region are outside. */
export function withinRegion(relate: Relate, grid: Grid, precision: number, region?: Bbox): Relate {
  if (!region) return relate;
  const shape = new PreparedGeometry({ bbox: region });
  const isSimple = region[0] < region[2];
  const { width } = grid.cellSize(precision);
  return (rect, closest) => {
    // A part of a cell counts although it lies beside the region, because cells are made as a whole.
    if (rect.east - rect.west < 0.75 * width) return relate(rect, closest);
    const [west, south] = grid.toLonLat(rect.west, rect.south);
    const [east, north] = grid.toLonLat(rect.east, rect.north);
    const box: Bbox = [west - EDGE_DEGREES, south - EDGE_DEGREES, east + EDGE_DEGREES, north + EDGE_DEGREES];
    if (!shape.intersects(box)) return 'outside';
    const relation = relate(rect, closest);
    const isLarger = rect.east - rect.west > 1.5 * width;
    return relation === 'inside' && isLarger && !(isSimple && shape.covers(box)) ? 'unclear' : relation;
  };
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
