/** The pixel sizes of a collection. Scenes with nearly equal sizes use the same, so that their tiles stack. */
import type { Grid } from './grid.js';
import { computePixelGrids, type PixelGrid } from './grid-cell-pixels.js';

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
