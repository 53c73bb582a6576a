/**
 * Pixels of cells: metres of cells on the ground, numbers of pixels of a cell, and the pixel sizes of a collection. Scenes with nearly
 * equal sizes use the same, so that their tiles stack.
 */
import type { Grid } from './grid.js';

/** WGS84: semi-major axis in metres, and the square of the eccentricity from the flattening 1/298.257223563. */
const SEMI_MAJOR_AXIS_M = 6378137;
const FLATTENING = 1 / 298.257223563;
const ECCENTRICITY_SQUARED = FLATTENING * (2 - FLATTENING);
const RADIANS = Math.PI / 180;

/**
 * Metres of one degree of longitude and of latitude at a latitude on the WGS84 ellipsoid, from its radii of curvature
 * N = a / sqrt(1 - e2 sin2) across the meridian and M = a (1 - e2) / (1 - e2 sin2)^(3/2) along it (Snyder, "Map
 * Projections: A Working Manual", USGS Professional Paper 1395, 1987, equations 4-18 to 4-21).
 */
export function metresPerDegree(lat: number): { lon: number; lat: number } {
  const w = 1 - ECCENTRICITY_SQUARED * Math.sin(lat * RADIANS) ** 2;
  const n = SEMI_MAJOR_AXIS_M / Math.sqrt(w);
  const m = (SEMI_MAJOR_AXIS_M * (1 - ECCENTRICITY_SQUARED)) / w ** 1.5;
  return { lon: n * Math.cos(lat * RADIANS) * RADIANS, lat: m * RADIANS };
}

/**
 * Straight distance in metres between two points (longitude, latitude) on the WGS84 ellipsoid, from their geocentric
 * coordinates (Hofmann-Wellenhof et al., "GNSS", 2008, equation 8.2). It is equally accurate at the poles and across the
 * antimeridian; below 100 km it is shorter than the distance along the ground by at most one part in 100,000.
 */
export function chordDistanceMetres(a: readonly [number, number], b: readonly [number, number]): number {
  const p = geocentric(a);
  const q = geocentric(b);
  return Math.hypot(p[0] - q[0], p[1] - q[1], p[2] - q[2]);
}

function geocentric([lon, lat]: readonly [number, number]): [number, number, number] {
  const n = SEMI_MAJOR_AXIS_M / Math.sqrt(1 - ECCENTRICITY_SQUARED * Math.sin(lat * RADIANS) ** 2);
  const r = n * Math.cos(lat * RADIANS);
  return [
    r * Math.cos(lon * RADIANS),
    r * Math.sin(lon * RADIANS),
    n * (1 - ECCENTRICITY_SQUARED) * Math.sin(lat * RADIANS),
  ];
}

/**
 * Width and height of a cell in ground metres at its centre latitude. Geohash: WGS84 arcs of the parallel and of the
 * meridian. Quadtile: metres of the projection times cos(latitude), the usual meaning of ground resolution on that map.
 */
export function cellSizeMetres(grid: Grid, geocode: string): { width: number; height: number } {
  const { west, south, east, north } = grid.bounds(geocode);
  const [, lat] = grid.toLonLat((west + east) / 2, (south + north) / 2);
  const metres =
    grid.epsg === 4326
      ? metresPerDegree(lat)
      : { lon: Math.cos(lat * RADIANS), lat: Math.cos(lat * RADIANS) };
  return { width: (east - west) * metres.lon, height: (north - south) * metres.lat };
}

/** A distance on the ground as a share of the width and of the height of a cell. */
export function shareOfCell(grid: Grid, geocode: string, metres: number): { x: number; y: number } {
  const { width, height } = cellSizeMetres(grid, geocode);
  return { x: metres / width, y: metres / height };
}

/** Numbers of pixels of a cell. */
export interface PixelGrid {
  width: number;
  height: number;
}

/** Relative difference up to which two lengths, or a ratio and a whole number, count as equal. */
const SIZE_TOLERANCE = 1e-3;

/**
 * Widths of geohash cells in metres have this number of steps per halving. So most neighbours in a column of cells have the same number
 * of pixels, and share one pixel grid; a pixel is at most 4.4 % narrower or wider than its nominal size.
 */
const WIDTH_STEPS_PER_OCTAVE = 8;

/** The latitude at which a degree of latitude has its mean length. */
const MEAN_DEGREE_LATITUDE = 45;

/** Width and height of a cell for its pixel grid, metres. Geohash: the width in steps, the height equal at all latitudes. */
export function nominalSizeMetres(grid: Grid, geocode: string): { width: number; height: number } {
  if (grid.name !== 'geohash') return cellSizeMetres(grid, geocode);
  const { west, south, east, north } = grid.bounds(geocode);
  const widest = (east - west) * metresPerDegree(0).lon;
  const octaves = Math.log2(widest / cellSizeMetres(grid, geocode).width);
  const steps = Math.round(octaves * WIDTH_STEPS_PER_OCTAVE);
  return {
    width: widest * 2 ** (-steps / WIDTH_STEPS_PER_OCTAVE),
    height: (north - south) * metresPerDegree(MEAN_DEGREE_LATITUDE).lat,
  };
}

/**
 * Pixel grid of a cell for each band group of a product. It depends only on the groups' nominal pixel sizes in ground metres,
 * so all dates of a cell stack. Geohash: the cell's nominal size divided by the pixel size; the coarsest group is
 * rounded first, and finer groups are a whole multiple of it if their sizes are. Quadtile: for each group the smallest
 * power of two that is not coarser than its pixels.
 */
export function computePixelGrids(
  grid: Grid,
  geocode: string,
  resolutions: readonly { x: number; y: number }[],
): PixelGrid[] {
  const ground = nominalSizeMetres(grid, geocode);
  const counts = grid.name === 'geohash' ? wholeMultiples : powersOfTwo;
  const widths = counts(
    ground.width,
    resolutions.map((resolution) => resolution.x),
  );
  const heights = counts(
    ground.height,
    resolutions.map((resolution) => resolution.y),
  );
  return widths.map((width, i) => ({ width, height: heights[i] }));
}

function wholeMultiples(length: number, sizes: number[]): number[] {
  const coarsest = Math.max(...sizes);
  const coarsestCount = Math.max(1, Math.round(length / coarsest));
  return sizes.map((size) => {
    const ratio = coarsest / size;
    const whole = Math.round(ratio);
    const isWhole = Math.abs(ratio - whole) <= SIZE_TOLERANCE * whole;
    return isWhole ? coarsestCount * whole : Math.max(1, Math.round(length / size));
  });
}

function powersOfTwo(length: number, sizes: number[]): number[] {
  return sizes.map((size) => {
    let count = 1;
    while (length / count > size * (1 + SIZE_TOLERANCE)) count *= 2;
    return count;
  });
}

/** Ground metres of a pixel along columns and rows. */
export interface PixelSize {
  x: number;
  y: number;
}

/**
 * Sizes in the order in which a collection met them. The pixel grids of one list are computed together: finer ones are whole multiples
 * of the coarsest if their sizes are. A list never gets a size coarser than its first, so the pixels of a cell never change.
 */
export type PixelSizes = readonly (readonly PixelSize[])[];

/** Relative difference up to which sizes count as equal in a collection. */
const MATCH_TOLERANCE = 0.05;
/** Relative difference up to which a size is replaced by a standard one, so that the order of scenes does not matter. */
const STANDARD_SIZE_TOLERANCE = 0.02;

/** Landsat, Sentinel-2, the sinusoidal grid of MODIS and VIIRS, and the nominal and resampled sizes of their products. */
const STANDARD_SIZES_METRES = [10, 15, 20, 30, 60, 231.6564, 250, 463.3127, 500, 926.6254, 1000];

/**
 * Matches the sizes of a scene to those of its collection: each gets the nearest one within the tolerance, and no two get the same.
 * A size without a match is added, as a standard size if one is near. `fitted` has the sizes to use, in the order of `sizes`;
 * `known` is the given list if no size is added.
 */
export function matchPixelSizes(
  known: PixelSizes,
  sizes: readonly PixelSize[],
): { fitted: PixelSize[]; known: PixelSizes } {
  const wanted = distinct(sizes.map(standardSize));
  const pairs = wanted
    .flatMap((size) =>
      known.flat().map((other) => ({ size, other, difference: sizeDifference(size, other) })),
    )
    .filter((pair) => pair.difference <= MATCH_TOLERANCE)
    .sort((a, b) => a.difference - b.difference);
  const matches = new Map<PixelSize, PixelSize>();
  const used = new Set<PixelSize>();
  for (const { size, other } of pairs) {
    if (matches.has(size) || used.has(other)) continue;
    matches.set(size, other);
    used.add(other);
  }
  const added = wanted.filter((size) => !matches.has(size)).sort((a, b) => maxSide(b) - maxSide(a));
  const fitted = sizes.map((size) => {
    const standard = wanted.find((one) => isSame(one, standardSize(size)))!;
    return matches.get(standard) ?? standard;
  });
  return { fitted, known: added.reduce(withSize, known) };
}

/** The pixel grids of a cell for sizes of its collection. Sizes that the collection does not have are computed together. */
export function pixelGridsFor(
  known: PixelSizes,
  grid: Grid,
  geocode: string,
  sizes: readonly PixelSize[],
): PixelGrid[] {
  const unknown = sizes.filter((size) => !known.flat().some((one) => isSame(one, size)));
  const lists = [...known, unknown].filter((list) => list.length > 0);
  const computed = lists.flatMap((list) => {
    const grids = computePixelGrids(grid, geocode, list);
    return list.map((size, i) => ({ size, grid: grids[i] }));
  });
  return sizes.map((size) => computed.find((one) => isSame(one.size, size))!.grid);
}

/** Adds a size: to the first list whose coarsest size is not finer, otherwise as a new list. */
function withSize(known: PixelSizes, size: PixelSize): PixelSizes {
  const fits = (list: readonly PixelSize[]) =>
    size.x <= Math.max(...list.map(({ x }) => x)) && size.y <= Math.max(...list.map(({ y }) => y));
  const at = known.findIndex(fits);
  return at < 0 ? [...known, [size]] : known.with(at, [...known[at], size]);
}

function standardSize({ x, y }: PixelSize): PixelSize {
  const standard = (metres: number) => {
    const isNear = (one: number) => Math.abs(Math.log(metres / one)) <= STANDARD_SIZE_TOLERANCE;
    return STANDARD_SIZES_METRES.find(isNear) ?? metres;
  };
  return { x: standard(x), y: standard(y) };
}

/** Relative difference of two sizes, in the axis in which they differ more. */
const sizeDifference = (a: PixelSize, b: PixelSize) =>
  Math.max(Math.abs(Math.log(a.x / b.x)), Math.abs(Math.log(a.y / b.y)));

const isSame = (a: PixelSize, b: PixelSize) => a.x === b.x && a.y === b.y;

const maxSide = ({ x, y }: PixelSize) => Math.max(x, y);

const distinct = (sizes: PixelSize[]) =>
  sizes.filter((size, i) => sizes.findIndex((one) => isSame(one, size)) === i);

/** A narrower tile has too few patches to train on and too few pixels for its overhead. */
const MIN_CELL_WIDTH_PIXELS = 128;

/**
 * The finest precision whose cell at a point is at least 128 source pixels wide at the finest data group, whose pixels
 * are `resolution` ground metres wide; the coarsest precision if no cell is that wide. For a point outside of the grid, the
 * nearest point of the grid is used.
 */
export function defaultPrecision(grid: Grid, lon: number, lat: number, resolution: number): number {
  const { west, south, east, north } = grid.extent;
  const point = grid.fromLonLat(lon, lat);
  const x = Math.min(Math.max(point[0], west), east);
  const y = Math.min(Math.max(point[1], south), north);
  for (let precision = grid.maxPrecision; precision > grid.minPrecision; precision--) {
    if (nominalSizeMetres(grid, grid.encode(x, y, precision)).width >= MIN_CELL_WIDTH_PIXELS * resolution)
      return precision;
  }
  return grid.minPrecision;
}
