import assert from 'node:assert/strict';
import { test } from 'node:test';
import { geohash } from '../../src/grid/index.js';
import { coverScene } from '../../src/ingest/cells.js';
import { crsFromEpsg, crsFromWkt } from '../../src/raster/index.js';
import { rasterAround, sceneOf } from './geometry-rasters.js';

function warningsOf(epsg: number, pixel: number): string[] {
  const size = { width: 100, height: 100, pixel };
  const scene = sceneOf(rasterAround('a', crsFromEpsg(epsg), [500_000, 4_500_000], size));
  coverScene(scene, geohash, 3);
  return scene.warnings;
}

test('a scene has a warning about its datum error if that exceeds half a pixel', () => {
  // NAD27 needs grids; one shift is not exact enough for an entire UTM zone.
  const [warning, ...others] = warningsOf(26717, 10);
  assert.match(
    warning!,
    /shift used is approximate: positions may be off by \d+ m\. For better positions, reproject with gdalwarp/,
  );
  assert.deepEqual(others, []);
  assert.deepEqual(warningsOf(26717, 1000), []);
  assert.deepEqual(warningsOf(26917, 0.5), []);
  assert.deepEqual(warningsOf(32617, 0.5), []);
});

test('a scene with a datum shift of unknown accuracy has a warning for any pixel size', () => {
  // Locodjo 1965, whose shift has no accuracy in the registry.
  const warnings = warningsOf(2040, 1000);
  assert.equal(warnings.length, 1);
  assert.match(warnings[0]!, /accuracy of the shift from its datum to WGS 84 is not known/);
});

test('a scene on an unknown datum has a warning for any pixel size', () => {
  const crs = crsFromWkt(
    'GEOGCS["g",DATUM["mine",SPHEROID["Bessel 1841",6377397.155,299.1528128]],UNIT["degree",0.0174532925199433]]',
    'a.nc',
  );
  const scene = sceneOf(rasterAround('a', crs, [10, 50], { width: 100, height: 100, pixel: 0.01 }));
  coverScene(scene, geohash, 3);
  assert.deepEqual(scene.warnings.length, 1);
  assert.match(scene.warnings[0]!, /treated as WGS 84.*hundred metres/);
});
