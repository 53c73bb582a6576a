/** Georeferencing (CRS and transform) of an image from its ENVI header. */
import { crsFromEpsg, crsFromWkt, isInvertible } from '../crs/index.js';
import { corrupt, noCrs, unknownCrs } from '../errors.js';
import type { Affine, Crs } from '../raster-types.js';
import { type EnviFields, listField } from './envi-header-fields.js';

/** Throws TW_RASTER_NO_CRS, TW_RASTER_UNKNOWN_CRS and TW_RASTER_CORRUPT. */
export function enviGeoreferencing(fields: EnviFields, path: string): { crs: Crs; transform: Affine } {
  const info = listField(fields, 'map info');
  if (!info) throw noCrs(path, 'its header has no "map info"');
  return { crs: crsOf(fields, info, path), transform: transformOf(info, path) };
}

/**
 * `map info` holds: projection, column and row of the tie point (the outer corner of the first pixel is 1, 1), its x and y,
 * width and height of a pixel, then parameters of the projection. `rotation` turns the image counterclockwise around the tie
 * point, degrees (as in GDAL; ENVI does not define it).
 */
function transformOf(info: string[], path: string): Affine {
  const [column, row, x, y, width, height] = info.slice(1, 7).map(Number) as [
    ...[number, number, number, number, number, number],
  ];
  if (![column, row, x, y, width, height].every(Number.isFinite))
    throw corrupt(
      path,
      `"map info" holds no six numbers after the projection: ${info.slice(0, 7).join(', ')}`,
    );
  const turn = (numberAfter(info, 'rotation') * Math.PI) / 180;
  const xx = Math.cos(turn) * width;
  const xy = Math.sin(turn) * width;
  const yx = Math.sin(turn) * height;
  const yy = -Math.cos(turn) * height;
  const originX = x - (column - 1) * xx - (row - 1) * xy;
  const originY = y - (column - 1) * yx - (row - 1) * yy;
  const transform = { originX, originY, xx, xy, yx, yy };
  if (!isInvertible(transform)) throw noCrs(path, 'its pixels have no extent');
  return transform;
}

/** The number of an item `name=number`; 0 if there is none. */
function numberAfter(info: string[], name: string): number {
  const item = info.find((one) => one.toLowerCase().startsWith(`${name}=`));
  const value = Number(item?.slice(name.length + 1));
  return Number.isFinite(value) ? value : 0;
}

function crsOf(fields: EnviFields, info: string[], path: string): Crs {
  const wkt = fields.get('coordinate system string');
  const epsg = epsgOf(info);
  if (epsg !== undefined) return crsFromEpsg(epsg);
  if (wkt) return crsFromWkt(wkt, path);
  if (/^arbitrary/i.test(info[0]!)) throw noCrs(path, 'its "map info" has the projection Arbitrary');
  throw unknownCrs(`${info[0]} on ${info.slice(7, 10).join(', ') || 'no datum'} of ${path}`);
}

/** UTM, and longitudes and latitudes on WGS 84, need no WKT. */
function epsgOf(info: string[]): number | undefined {
  const [projection] = info;
  const isWgs84 = (datum: string | undefined) => /^wgs[-_ ]?(19)?84$/i.test(datum ?? '');
  if (/^geographic/i.test(projection!) && isWgs84(info[7])) return 4326;
  const zone = Number(info[7]);
  if (!/^utm$/i.test(projection!) || !isWgs84(info[9]) || !(zone >= 1 && zone <= 60)) return undefined;
  return (/^s/i.test(info[8]!) ? 32700 : 32600) + zone;
}
