/** Positions of the rasters of an Item (STAC Projection extension 1.0 to 2.0), which are known before a file is opened. */
import { affineOfGdal, crsFromEpsg, isInvertible, unknownCrs } from '../../raster/index.js';
import type { RemoteItem } from '../../remote/index.js';
import type { GeoBox } from '../georeferencing/index.js';
import type { ChosenAsset } from './choose-item-assets.js';

/** Returns the position of each asset; undefined if the Item does not describe all of them. */
export function itemPositions(
  { document }: RemoteItem,
  assets: readonly ChosenAsset[],
): GeoBox[] | undefined {
  const properties = (document.properties ?? {}) as Record<string, unknown>;
  const positions = assets.flatMap(({ asset }) => {
    // The shape and the transform belong together.
    const grid = [asset, properties].find((one) => one['proj:shape'] !== undefined);
    const code = epsgOf(asset) ?? epsgOf(properties);
    return (grid && code !== undefined ? positionOf(grid, code) : undefined) ?? [];
  });
  return positions.length === assets.length ? positions : undefined;
}

function epsgOf({ 'proj:code': code, 'proj:epsg': number }: Record<string, unknown>): number | undefined {
  if (typeof number === 'number') return number;
  const [, digits] = typeof code === 'string' ? (/^EPSG:(\d{1,6})$/.exec(code) ?? []) : [];
  return digits === undefined ? undefined : Number(digits);
}

/** `proj:shape` is the height and width, `proj:transform` an affine transform by rows, with or without the row 0 0 1. */
function positionOf(
  { 'proj:shape': shape, 'proj:transform': transform }: Record<string, unknown>,
  epsg: number,
): GeoBox | undefined {
  const [height = 0, width = 0] = numbersOf(shape);
  const [a, b, c, d, e, f] = numbersOf(transform);
  if (f === undefined || !isSize(height) || !isSize(width)) return undefined;
  const affine = affineOfGdal([c!, a!, b!, f, d!, e!]);
  if (!isInvertible(affine)) return undefined;
  try {
    return { crs: crsFromEpsg(epsg), transform: affine, width, height };
  } catch (error) {
    if (unknownCrs.is(error)) return undefined;
    throw error;
  }
}

const isSize = (value: number) => Number.isSafeInteger(value) && value > 0;

const numbersOf = (list: unknown): number[] =>
  Array.isArray(list) && list.every((value) => Number.isFinite(value)) ? list : [];
