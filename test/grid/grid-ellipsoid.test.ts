/** Lengths on the ground, computed from the WGS84 ellipsoid. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { cellSizeMetres, chordDistanceMetres, geohash, quadtile } from '../../src/grid/index.js';
import { metresPerDegree } from '../../src/grid/pixels.js';

/** Semi-axes in metres (NGA.STND.0036). */
const [EQUATOR, POLE] = [6_378_137, 6_356_752.314245];

const near = (actual: number, expected: number, tolerance: number) =>
  assert.ok(Math.abs(actual - expected) <= tolerance, `${actual} is not ${expected}`);

test('chord distances match known distances on the ellipsoid', () => {
  near(chordDistanceMetres([0, 0], [180, 0]), 2 * EQUATOR, 1e-6);
  near(chordDistanceMetres([0, 0], [90, 0]), Math.hypot(EQUATOR, EQUATOR), 1e-6);
  near(chordDistanceMetres([77, 90], [-12, -90]), 2 * POLE, 1e-5);
  near(chordDistanceMetres([33, 0], [33, 90]), Math.hypot(EQUATOR, POLE), 1e-5);
  near(chordDistanceMetres([-60, 45], [120, -45]), 2 * 6_367_489.543874, 1e-4);
  assert.equal(chordDistanceMetres([12, 34], [12, 34]), 0);
});

test('short distances match the length of degrees, even across the antimeridian', () => {
  for (const lat of [-80, -35, 0.5, 52, 88]) {
    const { lon, lat: along } = metresPerDegree(lat);
    near(chordDistanceMetres([179.995, lat], [-179.995, lat]), 0.01 * lon, 0.01);
    near(chordDistanceMetres([7, lat - 0.005], [7, lat + 0.005]), 0.01 * along, 0.01);
  }
});

test('cells shrink towards the poles as their projection requires', () => {
  const metres = 2 * 20_037_508.342789244;
  // The centre of a quarter of the map is at 66.51 degrees.
  const { width, height } = cellSizeMetres(quadtile, '0');
  const cos = Math.cos((66.51326044311186 * Math.PI) / 180);
  near(width, (metres / 2) * cos, 1);
  near(height, (metres / 2) * cos, 1);
  const cell = cellSizeMetres(geohash, 's0');
  near(cell.width, 11.25 * metresPerDegree(2.8125).lon, 1e-6);
  near(cell.height, 5.625 * metresPerDegree(2.8125).lat, 1e-6);
  assert.deepEqual(
    [geohash.idPrefix, quadtile.idPrefix, geohash.epsg, quadtile.epsg],
    ['g', 'q', 4326, 3857],
  );
});
