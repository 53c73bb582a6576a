import { createTransform, crsFromEpsg } from '../src/raster/index.js';
import { hash } from './random.js';

/** Width of a label polygon in pixels, and the maximum number of polygons of a class. */
const SIDE = 8;
const MOST = 8;

export interface LabelGrid {
  /** Classes row by row, from 1. */
  classes: Uint8Array;
  width: number;
  height: number;
  /** Outer corner of the upper left pixel, and pixel size, in metres of the EPSG code. */
  origin: { x: number; y: number };
  pixelSize: number;
  epsg: number;
}

/**
 * A GeoJSON FeatureCollection of squares in each of which all pixels have the same class, with the properties `class` (its name) and
 * `code` (its number in the raster). Squares are picked at random by `seed`; longitudes and latitudes have seven decimals.
 */
export function labelPolygons(grid: LabelGrid, names: readonly string[], seed: number): object {
  const toLonLat = createTransform(crsFromEpsg(grid.epsg), 'EPSG:4326');
  const corner = (column: number, row: number) =>
    toLonLat(grid.origin.x + column * grid.pixelSize, grid.origin.y - row * grid.pixelSize).map((degrees) =>
      Number(degrees.toFixed(7)),
    );
  const squares: { column: number; row: number }[] = [];
  for (let row = 0; row + SIDE <= grid.height; row += SIDE)
    for (let column = 0; column + SIDE <= grid.width; column += SIDE) squares.push({ column, row });
  const rank = ({ column, row }: { column: number; row: number }) => hash(column, row, seed + 13);
  squares.sort((a, b) => rank(a) - rank(b) || a.row - b.row || a.column - b.column);
  const counts = new Uint32Array(names.length + 1);
  const features = squares.flatMap(({ column, row }) => {
    const code = onlyClass(grid, column, row);
    if (code === undefined || counts[code]! >= MOST) return [];
    counts[code]!++;
    const [west, east, north, south] = [column, column + SIDE, row, row + SIDE];
    const ring = [
      ...[corner(west, south), corner(east, south), corner(east, north), corner(west, north)],
      corner(west, south),
    ];
    return {
      type: 'Feature',
      properties: { class: names[code - 1], code },
      geometry: { type: 'Polygon', coordinates: [ring] },
    };
  });
  return { type: 'FeatureCollection', features };
}

/** The class of a square; undefined if it has several. */
function onlyClass({ classes, width }: LabelGrid, column: number, row: number): number | undefined {
  const code = classes[row * width + column]!;
  for (let y = row; y < row + SIDE; y++)
    for (let x = column; x < column + SIDE; x++) if (classes[y * width + x] !== code) return undefined;
  return code;
}
