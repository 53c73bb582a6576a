/** Draws cells of a grid as letters, north up. */
import { type GridName, gridByName } from '../../grid/index.js';

/** Maximum size of a readable map. */
const MAX_COLUMNS = 100;
const MAX_ROWS = 60;

/** Clusters are A to Z, then a to z, then *. */
export function clusterLetter(cluster: number): string {
  if (cluster < 26) return String.fromCharCode(65 + cluster);
  return cluster < 52 ? String.fromCharCode(97 + cluster - 26) : '*';
}

/** Returns undefined if the map would be too large. Draws only cells of the highest precision. */
export function asciiMap(
  gridName: GridName,
  cells: { geocode: string; mark: string }[],
): string[] | undefined {
  const grid = gridByName(gridName);
  const precision = most(cells.map(({ geocode }) => geocode.length));
  const { width, height } = grid.cellSize(precision);
  const placed = cells
    .filter(({ geocode }) => geocode.length === precision)
    .map(({ geocode, mark }) => {
      const { west, north } = grid.bounds(geocode);
      return { column: Math.round(west / width), row: -Math.round(north / height), mark };
    });
  const [left, top] = [least(placed.map(({ column }) => column)), least(placed.map(({ row }) => row))];
  const columns = 1 + most(placed.map(({ column }) => column)) - left;
  const lines = 1 + most(placed.map(({ row }) => row)) - top;
  if (columns > MAX_COLUMNS || lines > MAX_ROWS) return undefined;
  const rows = Array.from({ length: lines }, () => new Array<string>(columns).fill('.'));
  for (const { column, row, mark } of placed) rows[row - top][column - left] = mark;
  return rows.map((row) => row.join(' '));
}

const least = (values: number[]) => values.reduce((a, b) => Math.min(a, b), Infinity);
const most = (values: number[]) => values.reduce((a, b) => Math.max(a, b), -Infinity);
