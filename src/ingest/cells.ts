/** Which cells a scene covers. */
import { coverPolygon, defaultPrecision, type Grid } from '../geocode/index.js';
import { pixelToMap, projector, type RasterHeader } from '../raster/index.js';
import { tooManyTiles } from './errors.js';
import type { Scene, SourceGroup } from './scene.js';

/** More tiles than this in one scene are refused: it is far beyond any product, and mostly a precision typed wrong. */
const MAX_TILES = 200_000;

/** The finest data group: it sets the default precision and the size of the mask. */
export function finestGroup(scene: Scene): SourceGroup {
  return scene.groups.find((group) => group.role === 'data') ?? scene.groups[0];
}

/** The finest precision whose cell at the scene's centre is at least 128 px of the finest data group wide. */
export function scenePrecision(scene: Scene, grid: Grid): number {
  const group = finestGroup(scene);
  const { header } = group.bands[0];
  const toLonLat = projector(header.crs, 'EPSG:4326');
  const [lon, lat] = toLonLat(...pixelToMap(header.transform, header.width / 2, header.height / 2));
  return defaultPrecision(grid, lon, lat, Math.max(group.resolution.x, group.resolution.y));
}

/** Geocodes of the cells that the scene's data groups overlap, from north to south. */
export function sceneCells(scene: Scene, grid: Grid, precision: number): string[] {
  const cells = new Set<string>();
  for (const group of scene.groups.filter((g) => g.role === 'data')) {
    const ring = outline(group.bands[0].header, grid);
    guardCount(scene, grid, precision, ring);
    for (const geocode of coverPolygon(grid, ring, precision)) cells.add(geocode);
  }
  return [...cells];
}

function guardCount(scene: Scene, grid: Grid, precision: number, ring: [number, number][]): void {
  const { width, height } = grid.cellSize(precision);
  const xs = ring.map(([x]) => x);
  const ys = ring.map(([, y]) => y);
  const count =
    Math.ceil((Math.max(...xs) - Math.min(...xs)) / width + 1) *
    Math.ceil((Math.max(...ys) - Math.min(...ys)) / height + 1);
  if (count > MAX_TILES) throw tooManyTiles(scene.path, count, MAX_TILES, precision);
}

/** Points along each side of the raster, so that its curved edges in grid coordinates are followed. */
const POINTS_PER_SIDE = 64;

function outline(header: RasterHeader, grid: Grid): [number, number][] {
  const toGrid = projector(header.crs, `EPSG:${grid.epsg}`);
  const { width: w, height: h } = header;
  const sides: [number, number, number, number][] = [
    [0, 0, w, 0],
    [w, 0, w, h],
    [w, h, 0, h],
    [0, h, 0, 0],
  ];
  const ring = sides.flatMap(([c0, r0, c1, r1]) =>
    Array.from({ length: POINTS_PER_SIDE }, (_, i): [number, number] => {
      const t = i / POINTS_PER_SIDE;
      return toGrid(...pixelToMap(header.transform, c0 + (c1 - c0) * t, r0 + (r1 - r0) * t));
    }),
  );
  return [...ring, ring[0]];
}
