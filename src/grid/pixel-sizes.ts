/** The pixel sizes of a collection: scenes whose pixels are nearly alike take the same, so that their tiles stack. */
import type { Grid } from './grid.js';
import { computePixelGrids, type PixelGrid } from './pixel-grid.js';

/** Ground metres of a pixel along columns and rows. */
export interface PixelSize {
  x: number;
  y: number;
}

/**
 * Sizes in the order in which a collection met them. Those of one list are counted together: finer ones are whole multiples of
 * the coarsest where their sizes are. A list never gets a size coarser than its first, so the pixels of a cell never change.
 */
export type PixelSizes = readonly (readonly PixelSize[])[];

/** Sizes that differ by no more than this share are the same to a collection. */
const MATCH_TOLERANCE = 0.05;
/** A measured size this near to a usual one is that one, whichever scene comes first. */
const STANDARD_SIZE_TOLERANCE = 0.02;

/** Landsat, Sentinel-2, the sinusoidal grid of MODIS and VIIRS, and what their products are called and resampled to. */
const STANDARD_SIZES_METRES = [10, 15, 20, 30, 60, 231.6564, 250, 463.3127, 500, 926.6254, 1000];

/**
 * Fits the sizes of a scene to those that its collection knows: each takes the nearest that is alike, no two the same; what is
 * like none is added, as the usual size that it is near to. `fitted` are the sizes to take, in the order of `sizes`; `known` is
 * the given list where nothing is new.
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
    .filter(({ difference }) => difference <= MATCH_TOLERANCE)
    .sort((a, b) => a.difference - b.difference);
  const found = new Map<PixelSize, PixelSize>();
  const taken = new Set<PixelSize>();
  for (const { size, other } of pairs) {
    if (found.has(size) || taken.has(other)) continue;
    found.set(size, other);
    taken.add(other);
  }
  const fresh = wanted.filter((size) => !found.has(size)).sort((a, b) => maxSide(b) - maxSide(a));
  const fitted = sizes.map((size) => {
    const usual = wanted.find((one) => isSame(one, standardSize(size))) as PixelSize;
    return found.get(usual) ?? usual;
  });
  return { fitted, known: fresh.reduce(withSize, known) };
}

/** The pixel grids of a cell for sizes that its collection knows; a size that it does not know is counted with the others given. */
export function pixelGridsFor(
  known: PixelSizes,
  grid: Grid,
  geocode: string,
  sizes: readonly PixelSize[],
): PixelGrid[] {
  const strangers = sizes.filter((size) => !known.flat().some((one) => isSame(one, size)));
  const lists = [...known, strangers].filter((list) => list.length > 0);
  const counted = lists.flatMap((list) => {
    const grids = computePixelGrids(grid, geocode, list);
    return list.map((size, i) => ({ size, grid: grids[i] }));
  });
  return sizes.map(
    (size) => (counted.find((one) => isSame(one.size, size)) as (typeof counted)[number]).grid,
  );
}

/** With a size that is like none: in the first list whose coarsest it is no coarser than, else in one of its own. */
function withSize(known: PixelSizes, size: PixelSize): PixelSizes {
  const fits = (list: readonly PixelSize[]) =>
    size.x <= Math.max(...list.map(({ x }) => x)) && size.y <= Math.max(...list.map(({ y }) => y));
  const at = known.findIndex(fits);
  return at < 0 ? [...known, [size]] : known.with(at, [...known[at], size]);
}

function standardSize({ x, y }: PixelSize): PixelSize {
  const usual = (metres: number) => {
    const near = STANDARD_SIZES_METRES.filter(
      (one) => Math.abs(Math.log(metres / one)) <= STANDARD_SIZE_TOLERANCE,
    );
    return near[0] ?? metres;
  };
  return { x: usual(x), y: usual(y) };
}

/** By which share two sizes differ, in the axis in which they differ more. */
const sizeDifference = (a: PixelSize, b: PixelSize) =>
  Math.max(Math.abs(Math.log(a.x / b.x)), Math.abs(Math.log(a.y / b.y)));

const isSame = (a: PixelSize, b: PixelSize) => a.x === b.x && a.y === b.y;

const maxSide = ({ x, y }: PixelSize) => Math.max(x, y);

const distinct = (sizes: PixelSize[]) =>
  sizes.filter((size, i) => sizes.findIndex((one) => isSame(one, size)) === i);
