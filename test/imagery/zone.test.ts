import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseZone } from '../../src/imagery/index.js';

test('an area is a geometry, a Feature, or the only Feature of a file as QGIS and ogr2ogr write it', () => {
  const geometry = { type: 'Point', coordinates: [15, 48] };
  const feature = { type: 'Feature', properties: {}, geometry };
  const file = (...features: object[]) => ({ type: 'FeatureCollection', features });
  const point = { kind: 'point', point: [15, 48] };
  for (const given of [geometry, feature, file(feature)]) assert.deepEqual(parseZone(given), point);
  for (const given of [
    file(),
    file(feature, feature),
    file(file(file({}))),
    { type: 'FeatureCollection' },
    null,
  ])
    assert.throws(() => parseZone(given), { code: 'TW_IMAGERY_REGION' });
});

test('the error for a latitude beyond 90 states the order of coordinates, and suggests the swapped point if that is valid', () => {
  const message = (...coordinates: number[]) => {
    try {
      parseZone({ type: 'Point', coordinates });
    } catch (error) {
      return String(error);
    }
    return '';
  };
  assert.match(message(-33.9, 151.2), /longitude comes first, so perhaps 151\.2,-33\.9 is meant/);
  assert.match(message(100, 95), /beyond 90 degrees of latitude; longitude comes first; give/);
  assert.match(message(181, 10), /beyond 180 degrees of longitude/);
});

test('a message quotes only the start of a long invalid text', () => {
  const long = 'x'.repeat(900_000);
  for (const given of [
    { type: long },
    { type: 'Point', coordinates: long },
    { type: 'Polygon', coordinates: [[[long]]] },
  ])
    assert.throws(
      () => parseZone(given),
      (error: Error) => /xxx\.\.\./.test(error.message) && error.message.length < 400,
    );
});
