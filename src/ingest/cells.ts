/** Determines the cells that a scene covers, those of a region among them, and the source pixels that a cell reads. */
import {
  type Bbox,
  cellBbox,
  coverRegionByRelation,
  type Grid,
  type GridBounds,
  type Relation,
} from '../grid/index.js';
import { PreparedGeometry } from '../query/index.js';
import { createTransform, pixelToMap, type Window } from '../raster/index.js';
import { noGeographicExtent, outsideGrid, tooManyTiles } from './errors.js';
import {
  datumWarning,
  type ExtentSample,
  type GeoBox,
  gridToPixelTransform,
  isOutOfRange,
  type ProjectedRectangle,
  projectRectangle,
  sampleExtent,
  splitIntoQuadrants,
} from './georeferencing.js';
import type { Scene, SourceGroup } from './scene.js';

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
function withinRegion(relate: Relate, grid: Grid, precision: number, region?: Bbox): Relate {
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

/** Limit of the tiles of one scene: far beyond any product, and mostly a mistyped precision. */
const MAX_TILES_PER_SCENE = 200_000;

/**
 * Geocodes of the cells that the scene's data groups overlap, from north to south. Adds a warning to the scene if a part of it
 * lies beyond the grid, or if its datum makes positions inexact. Throws TW_INGEST_OUTSIDE_GRID or TW_INGEST_OFF_EARTH if no
 * cell is covered, and TW_INGEST_TOO_MANY_TILES. With a region in degrees, only the cells that share more than an edge with it, and none if
 * the scene lies beside it.
 */
export function coverScene(scene: Scene, grid: Grid, precision: number, region?: Bbox): string[] {
  const covered = coverRasters(geoBoxesOf(scene), scene.path, grid, precision, region);
  // Without a cell in the region, the scene may have no cell at all, which is an error.
  if (region && covered.cells.length === 0) coverScene(scene, grid, precision);
  else addWarnings(scene, grid, covered);
  return region ? covered.cells.filter(regionFilter(grid, region)) : covered.cells;
}

interface Cover {
  cells: string[];
  positions: GeoBox[];
  /** Approximate fraction of the scene that lies beyond the grid. */
  lost: number;
}

/** True if any of the rasters overlaps a cell that shares more than an edge with the region. Throws as `coverScene` does for `path`. */
export function overlapsRegion(
  positions: GeoBox[],
  path: string,
  grid: Grid,
  precision: number,
  region: Bbox,
): boolean {
  const { cells } = coverRasters(positions, path, grid, precision, region);
  return cells.some(regionFilter(grid, region));
}

function coverRasters(
  positions: GeoBox[],
  path: string,
  grid: Grid,
  precision: number,
  region?: Bbox,
): Cover {
  const samples = positions.map(sampleExtent);
  const lost = Math.max(...samples.map(({ points }) => fractionOutsideGrid(points, grid)));
  const tooMany = (tiles: number) => tooManyTiles(path, tiles, MAX_TILES_PER_SCENE, precision);
  const covers = positions.map((position, i) =>
    coverRegionByRelation(
      grid,
      precision,
      withinRegion(relationTo(position, samples[i], grid), grid, precision, region),
      MAX_TILES_PER_SCENE,
      tooMany,
    ),
  );
  return { cells: covers.length === 1 ? covers[0] : [...new Set(covers.flat())], positions, lost };
}

function addWarnings(scene: Scene, grid: Grid, { cells, positions, lost }: Cover): void {
  if (cells.length === 0)
    throw lost > 0 ? outsideGrid(scene.path, grid.name) : noGeographicExtent(scene.path);
  if (lost > 0) {
    const percent = lost < 0.01 ? 'less than 1' : `about ${Math.round(100 * lost)}`;
    scene.warnings.push(
      `${percent} % of the scene lies beyond the ${grid.name} grid and has no tiles; use another grid for it`,
    );
  }
  const warnings = positions.map(datumWarning).filter((warning) => warning !== undefined);
  scene.warnings.push(...new Set(warnings));
}

/** GeoBoxes of the data groups; groups of different pixel sizes mostly cover the same ground. */
function geoBoxesOf(scene: Scene): GeoBox[] {
  const positions = new Map<string, GeoBox>();
  for (const { role, bands } of scene.groups) {
    const { crs, transform, width, height } = bands[0].header;
    const corner = (column: number, row: number) => pixelToMap(transform, column, row);
    const key = JSON.stringify([crs.proj4, corner(0, 0), corner(width, 0), corner(0, height)]);
    if (role === 'data' && !positions.has(key)) positions.set(key, { crs, transform, width, height });
  }
  return [...positions.values()];
}

/** Approximate fraction of a scene that lies beyond the latitudes of the grid. */
function fractionOutsideGrid(places: ExtentSample['points'], grid: Grid): number {
  const [, limit] = grid.toLonLat(0, grid.extent.north);
  const beyond = places.filter(([, lat]) => Math.abs(lat) > limit + 1e-9);
  return places.length === 0 ? 0 : beyond.length / places.length;
}

/** An overlap narrower than this, in pixels, is a rounding error along an edge. */
const MIN_OVERLAP_PIXELS = 1e-6;

/**
 * The relation of rectangles of the grid to a raster. Rectangles are projected into the raster, and never the raster onto the
 * globe: its outline there may contain a pole, cross the antimeridian, or leave the Earth. The projection of a rectangle is
 * smooth except at the edge of the map. There, if the points of a rectangle are far apart even at the finest subdivision, only
 * the points count.
 */
function relationTo(
  position: GeoBox,
  sample: ExtentSample,
  grid: Grid,
): (rect: GridBounds, closest: boolean) => Relation {
  const { width, height } = position;
  const locate = gridToPixelTransform(grid.epsg, position);
  const isOnMap = roundTripCheck(position, grid);
  const isInside = (column: number, row: number) =>
    column > MIN_OVERLAP_PIXELS &&
    column < width - MIN_OVERLAP_PIXELS &&
    row > MIN_OVERLAP_PIXELS &&
    row < height - MIN_OVERLAP_PIXELS;

  return (rect, closest) => {
    if (isOutOfRange(rect, grid, sample)) return 'outside';
    const image = projectRectangle(rect, locate);
    if (image.points.length === 0) return 'outside';
    const { left, top, right, bottom } = withMargin(image, closest ? 0 : 1 / 16);
    const beside =
      right <= MIN_OVERLAP_PIXELS ||
      left >= width - MIN_OVERLAP_PIXELS ||
      bottom <= MIN_OVERLAP_PIXELS ||
      top >= height - MIN_OVERLAP_PIXELS;
    if (beside) return 'outside';
    const onMap = isOnMap(rect);
    if (onMap && left >= 0 && right <= width && top >= 0 && bottom <= height) return 'inside';
    if (onMap && image.points.some((point) => isInside(...point))) return 'touching';
    if (!closest) return 'unclear';
    return onMap && isSmooth(image) ? 'touching' : 'outside';
  };
}

/**
 * The bounding box of a rectangle's image: that of its nine points, extended by the curvature between them, and by a fraction
 * of its size for effects that second differences do not detect in a large rectangle.
 */
function withMargin({ left, top, right, bottom, curvature }: ProjectedRectangle, share: number) {
  const x = curvature.x + (right - left) * share;
  const y = curvature.y + (bottom - top) * share;
  return { left: left - x, top: top - y, right: right + x, bottom: bottom + y };
}

/** False across the edge of a map, where one part of a rectangle lies far from the other. */
function isSmooth({ left, top, right, bottom, curvature }: ProjectedRectangle): boolean {
  return Math.max(curvature.x, curvature.y) <= Math.max(right - left, bottom - top) / 2;
}

/**
 * Tests that the centre of a rectangle survives the round trip through the raster's system. Some projections fold the far side
 * of the Earth onto the near one (transverse Mercator beyond 90 degrees, the oblique Mercator of Switzerland, polyconic).
 */
function roundTripCheck({ crs }: GeoBox, grid: Grid): (rect: GridBounds) => boolean {
  if (crs.geographic) return () => true;
  const there = createTransform(`EPSG:${grid.epsg}`, crs);
  const back = createTransform(crs, 'EPSG:4326');
  return ({ west, south, east, north }) => {
    const x = (west + east) / 2;
    const y = (south + north) / 2;
    const [lon, lat] = grid.toLonLat(x, y);
    const [lonBack, latBack] = back(...there(x, y));
    const turned = Math.abs(((((lonBack - lon + 180) % 360) + 360) % 360) - 180);
    return turned <= 0.01 && Math.abs(latBack - lat) <= 0.01;
  };
}

/** Source rows or columns [from, to) of one group; from = to if the cell lies beside the raster. */
export type RowRange = [from: number, to: number];

/** Pixels beyond the exact ones: one for bilinear neighbours, one for the error of the warp's interpolation. */
const MARGIN_PIXELS = 2;
/** If a part of a cell bends by less than this, in pixels, its extremes are at its points. */
const MAX_CURVATURE_PIXELS = 0.5;
/** Limit of the subdivisions: beyond it only the edge of a map is not flat. */
const MAX_SUBDIVISIONS = 8;

/** Edges and curvature of a projected rectangle along one axis of the raster. */
interface Axis {
  length(header: { width: number; height: number }): number;
  edges(image: ProjectedRectangle): [low: number, high: number, curvature: number];
}

const ROWS: Axis = {
  length: ({ height }) => height,
  edges: ({ top, bottom, curvature }) => [top, bottom, curvature.y],
};
const COLUMNS: Axis = {
  length: ({ width }) => width,
  edges: ({ left, right, curvature }) => [left, right, curvature.x],
};

/**
 * All rows from the northernmost to the southernmost point of the cell, even if these lie within the cell (a pole) or between
 * its corners (a curved parallel).
 */
export function sourceRowsForCell(group: SourceGroup, grid: Grid, geocode: string): RowRange {
  return sourceRanges(group, grid, geocode, [ROWS])[0]!;
}

/** The rows and columns of a cell; without pixels if the cell lies beside the raster. */
export function sourceWindowForCell(group: SourceGroup, grid: Grid, geocode: string): Window {
  const [rows, columns] = sourceRanges(group, grid, geocode, [ROWS, COLUMNS]) as [RowRange, RowRange];
  return { column: columns[0], row: rows[0], width: columns[1] - columns[0], height: rows[1] - rows[0] };
}

/** Parts of the cell that cannot extend a range are not subdivided. */
function sourceRanges(group: SourceGroup, grid: Grid, geocode: string, axes: Axis[]): RowRange[] {
  const { header } = group.bands[0]!;
  const locate = gridToPixelTransform(grid.epsg, header);
  const ranges = axes.map((axis) => ({ axis, length: axis.length(header), low: Infinity, high: -Infinity }));
  const clip = (length: number, at: number) => Math.max(0, Math.min(length, at));

  const widen = (
    image: ProjectedRectangle,
    beyond: (low: number, high: number, curvature: number) => number,
  ) => {
    for (const range of ranges) {
      const [low, high, curvature] = range.axis.edges(image);
      const more = beyond(low, high, curvature);
      range.low = Math.min(range.low, low - more);
      range.high = Math.max(range.high, high + more);
    }
  };
  const isWithin = (image: ProjectedRectangle) =>
    ranges.every(({ axis, length, low: from, high: to }) => {
      const [low, high, curvature] = axis.edges(image);
      return clip(length, low - curvature) >= from && clip(length, high + curvature) <= to;
    });

  const visit = (rect: GridBounds, divisions: number) => {
    const image = projectRectangle(rect, locate);
    const { points, curvature } = image;
    if (points.length === 0 || isWithin(image)) return;
    if (Math.max(curvature.x, curvature.y) <= MAX_CURVATURE_PIXELS) return widen(image, () => 0);
    if (divisions === MAX_SUBDIVISIONS)
      return widen(image, (low, high, curvature) => Math.min(curvature, high - low));
    widen(image, () => 0);
    for (const quarter of splitIntoQuadrants(rect)) visit(quarter, divisions + 1);
  };
  visit(grid.bounds(geocode), 0);
  return ranges.map(({ length, low, high }) =>
    low > high
      ? [0, 0]
      : [clip(length, Math.floor(low) - MARGIN_PIXELS), clip(length, Math.ceil(high) + MARGIN_PIXELS)],
  );
}
