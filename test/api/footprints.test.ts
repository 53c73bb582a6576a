/** Searches by place against the pixels of stored masks: tiles with data there are found, and none that is empty around there. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import fc from 'fast-check';
import { type GridName, gridByName } from '../../src/grid/index.js';
import { openNode } from '../../src/node.js';
import type { Storage, TileRecord } from '../../src/storage/index.js';
import { pixelsOf, randomly, storeScene } from '../derive/tiles.js';
import { shareAPoint } from '../query/spatial-oracle.js';
import { tempFolder } from '../support/temp.js';

/** Cells on both sides of the antimeridian, the equator and the meridian of Greenwich, and a single one. */
const PLACES: { grid: GridName; geocodes: string[] }[] = [
  { grid: 'geohash', geocodes: ['8r', 'xr', 's0', 'kp', '7z', 'eb'] },
  { grid: 'geohash', geocodes: ['u336xq', 'u336xr'] },
  { grid: 'quadtile', geocodes: ['0200', '1311', '3000', '1222', '0333', '2111'] },
  { grid: 'quadtile', geocodes: ['12021021', '12021023'] },
];

type Point = [lon: number, lat: number];
type Geometry = Parameters<typeof shareAPoint>[0];
type Box = [west: number, south: number, east: number, north: number];

/** Masks of one tile: true for pixels with data. `x` and `y` run from 0 to 1, from the north-west. */
const SHAPES: ((random: () => number) => (x: number, y: number) => boolean)[] = [
  () => () => true,
  (random) => {
    const [a, b, c] = [random() - 0.5, random() - 0.5, 0.4 * random()];
    return (x, y) => a * (x - 0.5) + b * (y - 0.5) > 0.5 * c * (Math.abs(a) + Math.abs(b));
  },
  (random) => {
    const [cx, cy, r] = [random(), random(), 0.3 * random()];
    return (x, y) => Math.hypot(x - cx, y - cy) <= r;
  },
  (random) => {
    const size = 0.05 + 0.3 * random();
    return (x, y) => (x < size && y < size) || (x > 1 - size && y > 1 - size);
  },
  (random) => {
    const size = 0.1 + 0.2 * random();
    return (x, y) => Math.max(Math.abs(x - 0.5), Math.abs(y - 0.5)) > size;
  },
  (random) => () => random() < 0.02,
];

async function storeShapes(storage: Storage): Promise<void> {
  const random = randomly(7);
  for (const [place, { grid, geocodes }] of PLACES.entries())
    for (const [day, shape] of SHAPES.entries()) {
      const tiles = geocodes.map((geocode) => {
        const [width, height] = [5 + Math.floor(36 * random()), 3 + Math.floor(38 * random())];
        const isData = shape(random);
        const mask = Uint8Array.from({ length: width * height }, (_, i) =>
          isData(((i % width) + 0.5) / width, (Math.floor(i / width) + 0.5) / height)
            ? 1 + Math.floor(4 * random())
            : 0,
        );
        // The storage accepts only tiles with data.
        if (!mask.some((code) => code > 0)) mask[Math.floor(random() * mask.length)] = 1;
        const pixels = Uint16Array.from(mask, (code) => (code > 0 ? 100 : 0));
        return {
          ...{ collection: `c${place}`, grid, geocode, mask },
          groups: [{ width, height, bands: [{ name: 'red', pixels }] }],
        };
      });
      await storeScene(storage, { id: `s${day}`, day, tiles });
    }
}

interface MaskedTile {
  id: string;
  cell: Box;
  /** Rectangles of the pixels with data, in degrees, and the same with an eighth of the cell around them. */
  pixels: Box[];
  around: Box[];
}

async function readMask(storage: Storage, tile: TileRecord): Promise<MaskedTile> {
  const [codes] = await pixelsOf(storage, tile, 'mask');
  const { width, height } = tile.groups.find(({ role }) => role === 'mask')!;
  const grid = gridByName(tile.grid);
  const { west, south, east, north } = grid.bounds(tile.geocode);
  const box = (left: number, top: number, right: number, bottom: number): Box => [
    ...grid.toLonLat(west + (east - west) * left, north - (north - south) * bottom),
    ...grid.toLonLat(west + (east - west) * right, north - (north - south) * top),
  ];
  const boxes = (margin: number) =>
    Array.from(codes!).flatMap((code, i) => {
      const [x, y] = [i % width, Math.floor(i / width)];
      const [left, right] = [x / width - margin, (x + 1) / width + margin];
      return code === 0 ? [] : [box(left, y / height - margin, right, (y + 1) / height + margin)];
    });
  return { id: tile.id, cell: box(0, 0, 1, 1), pixels: boxes(0), around: boxes(1 / 8) };
}

/** True if no axis separates a convex ring from a box with `margin` degrees around it. */
function meet(ring: Point[], [w, s, e, n]: Box, margin = 0): boolean {
  const corners = ringOf([w - margin, s - margin, e + margin, n + margin]);
  const normals = ring.map(([x, y], i): Point => {
    const [u, v] = ring[(i + 1) % ring.length]!;
    return [v - y, x - u];
  });
  return [...normals, [1, 0] as Point, [0, 1] as Point].every(([a, b]) => {
    const [p, q] = [ring, corners].map((points) => points.map(([x, y]) => a * x + b * y));
    return Math.max(...p!) >= Math.min(...q!) && Math.max(...q!) >= Math.min(...p!);
  });
}

/** Far below the size of a pixel, and far above rounding errors. */
const TINY = 1e-7;

/** A query near a cell, as convex rings: more than one if it crosses the antimeridian. */
interface Area {
  rings: Point[][];
  filter: { bbox: Box } | { intersects: Geometry };
}

const closed = (ring: Point[]): Geometry => ({ type: 'Polygon', coordinates: [[...ring, ring[0]!]] });
const ringOf = ([w, s, e, n]: Box): Point[] => [
  [w, s],
  [e, s],
  [e, n],
  [w, n],
];

function areasNear(cells: Box[]): fc.Arbitrary<Area> {
  // From two cells west and south of a cell to two east and north of it, often on its edges and those of its parts.
  const place = fc.oneof(
    fc.integer({ min: -32, max: 48 }).map((i) => i / 16),
    fc.integer({ min: -2000, max: 3000 }).map((i) => i / 1000),
  );
  const lonOf = ([w, , e]: Box, x: number) => w + (e - w) * x;
  const latOf = ([, s, , n]: Box, y: number) => Math.max(-85, Math.min(85, s + (n - s) * y));
  const box = fc
    .tuple(fc.constantFrom(...cells), place, place, place, place)
    .map(([cell, a, b, c, d]): Area => {
      const [w, e] = [lonOf(cell, Math.min(a, b)), lonOf(cell, Math.max(a, b))];
      const [s, n] = [latOf(cell, Math.min(c, d)), latOf(cell, Math.max(c, d))];
      const wrapped = (lon: number) => (lon > 180 ? lon - 360 : lon < -180 ? lon + 360 : lon);
      const bbox: Box = [wrapped(w), s, wrapped(e), n];
      const parts: Box[] =
        bbox[0] <= bbox[2]
          ? [bbox]
          : [
              [bbox[0], s, 180, n],
              [-180, s, bbox[2], n],
            ];
      return { rings: parts.map(ringOf), filter: { bbox } };
    });
  const triangle = fc
    .tuple(fc.constantFrom(...cells), fc.array(fc.tuple(place, place), { minLength: 3, maxLength: 3 }))
    .map(([cell, points]): Area => {
      const ring = points.map(
        ([x, y]): Point => [Math.max(-180, Math.min(180, lonOf(cell, x))), latOf(cell, y)],
      );
      return { rings: [ring], filter: { intersects: closed(ring) } };
    })
    .filter(({ rings: [ring] }) => {
      const [[ax, ay], [bx, by], [cx, cy]] = ring as [Point, Point, Point];
      return Math.abs((bx - ax) * (cy - ay) - (by - ay) * (cx - ax)) > TINY;
    });
  const point = fc.tuple(fc.constantFrom(...cells), place, place).map(([cell, x, y]): Area => {
    const coordinates: Point = [Math.max(-180, Math.min(180, lonOf(cell, x))), latOf(cell, y)];
    return { rings: [[coordinates]], filter: { intersects: { type: 'Point', coordinates } } };
  });
  return fc.oneof(box, triangle, point);
}

interface Answer {
  features: { id: string; geometry: Geometry }[];
  numberMatched: number;
  links: { rel: string; body?: object }[];
}

test('a search by place finds the tiles with data there, and none whose data is farther away than an eighth of its cell', async (t) => {
  const data = join(await tempFolder(t), 'data');
  const open = () => openNode({ data, memory: 256e6, cores: 1 });
  let node = await open();
  t.after(() => node.close());
  await storeShapes(node.storage);
  const masked: MaskedTile[] = [];
  for await (const tile of node.storage.catalogue.tiles.values())
    masked.push(await readMask(node.storage, tile));
  assert.equal(masked.length, 6 * 16);
  const cells = [...new Map(masked.map(({ cell }) => [String(cell), cell])).values()];

  const post = async <T>(url: string, payload: object): Promise<T> => {
    const answer = await node.server.inject({ method: 'POST', url, payload });
    assert.equal(answer.statusCode, 200, answer.body);
    return answer.json();
  };
  const search = (body: object) => post<Answer>('/search', { limit: 200, ...body });
  const all = await search({});
  const sorted = (answer: Answer) => answer.features.map(({ id }) => id).sort();
  let leftOut = 0;
  let found = 0;
  const check = async ({ rings, filter }: Area) => {
    const text = JSON.stringify(filter);
    const answer = await search(filter);
    const ids = new Set(sorted(answer));
    assert.equal(answer.numberMatched, ids.size);
    for (const { id, cell, pixels, around } of masked) {
      const isIn = (boxes: Box[], margin: number) =>
        rings.some((ring) => boxes.some((box) => meet(ring, box, margin)));
      if (isIn(pixels, -TINY)) assert.ok(ids.has(id), `${text} loses ${id}`);
      else if (!isIn(around, TINY)) assert.ok(!ids.has(id), `${text} finds ${id}, which is empty there`);
      if (ids.has(id)) found++;
      else if (isIn([cell], 0)) leftOut++;
    }
    // Clients that compare the geometries of Items find the same.
    const shapes: Geometry[] = 'bbox' in filter ? rings.map(closed) : [filter.intersects];
    const isFlat =
      'bbox' in filter && (filter.bbox[0] === filter.bbox[2] || filter.bbox[1] === filter.bbox[3]);
    if (!isFlat)
      assert.deepEqual(
        all.features
          .filter(({ geometry }) => shapes.some((shape) => shareAPoint(geometry, shape)))
          .map(({ id }) => id)
          .sort(),
        [...ids],
        text,
      );
    const operand = 'bbox' in filter ? filter : filter.intersects;
    const args = [{ property: 'geometry' }, operand];
    const disjoint = await search({ filter: { op: 's_disjoint', args } });
    assert.deepEqual(
      sorted(disjoint),
      masked
        .map(({ id }) => id)
        .filter((id) => !ids.has(id))
        .sort(),
    );
    const counted = await post<{ aggregations: { name: string; value: number }[] }>('/aggregate', {
      ...filter,
      aggregations: ['total_count'],
    });
    assert.equal(counted.aggregations[0]!.value, ids.size);
    const paged: string[] = [];
    let page = await search({ ...filter, limit: 5 });
    for (;;) {
      paged.push(...page.features.map(({ id }) => id));
      const next = page.links.find(({ rel }) => rel === 'next');
      if (!next) break;
      page = await search(next.body!);
    }
    assert.deepEqual(paged.sort(), [...ids]);
  };
  await fc.assert(fc.asyncProperty(areasNear(cells), check), { seed: 42, numRuns: 100 });
  assert.ok(found > 500 && leftOut > 200, `${found} found, ${leftOut} left out although their cell is there`);

  // The parts survive a restart.
  await node.close();
  node = await open();
  assert.equal(node.storage.indexLoad.from, 'snapshot');
  await fc.assert(fc.asyncProperty(areasNear(cells), check), { seed: 43, numRuns: 20 });
});
