/** Algorithms compared with those of titiler. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { applyAlgorithm, borderPixels, parseAlgorithm } from '../../src/imagery/algorithms.js';
import { planeOf, reference } from './titiler.js';

const { width, height } = reference;
/** Metres, as in the reference. */
const PIXEL = { x: 10, y: 10 };
const CONVERSIONS: Record<string, typeof reference.bands> = {
  cast: reference.bytes,
  floor: reference.bytes,
  ceil: reference.ceil,
};

for (const { name, params, bands, shape, planes } of reference.algorithms)
  test(`${name} ${JSON.stringify(params)} of ${bands} bands equals that of titiler`, () => {
    const terrain = ['hillshade', 'slope', 'contours', 'terrarium', 'terrainrgb'].includes(name);
    const given = terrain ? [reference.dem] : (CONVERSIONS[name] ?? reference.bands).slice(0, bands);
    const algorithm = parseAlgorithm(name, JSON.stringify(params), bands);
    const image = { width, height, planes: given.map(planeOf) };
    const made = applyAlgorithm(algorithm, image, PIXEL, borderPixels(algorithm));
    assert.deepEqual([made.height, made.width], shape);
    assert.equal(made.planes.length, planes.length);
    const cut = (width - made.width) / 2;
    for (const [p, plane] of planes.entries())
      for (const [i, wanted] of plane.entries()) {
        const [row, column] = [Math.floor(i / made.width) + cut, (i % made.width) + cut];
        const value = made.planes[p][i];
        // numpy.gradient gives a slope to a hole between pixels that have data.
        const hole = given[0][row * width + column] === null;
        if (hole && params['nodata_height'] === undefined) assert.ok(Number.isNaN(value));
        else if (wanted === null) assert.ok(Number.isNaN(value), `${p} ${i}: ${value}`);
        // titiler computes the index in single precision.
        else
          assert.ok(
            Math.abs(value - wanted) <= 2e-6 * Math.max(1, Math.abs(wanted)),
            `${p} ${i}: ${value}, ${wanted}`,
          );
      }
  });

test('ndi is another name of normalizedIndex', () => {
  const image = { width, height, planes: reference.bands.slice(0, 2).map(planeOf) };
  const [a, b] = ['ndi', 'normalizedIndex'].map((name) =>
    applyAlgorithm(parseAlgorithm(name, undefined, 2), image, PIXEL, 0),
  );
  assert.deepEqual(a, b);
});

test('an unusable algorithm is refused with a reason', () => {
  const fail = (name: string, params: string | undefined, bands: number, why: RegExp) =>
    assert.throws(() => parseAlgorithm(name, params, bands), { code: 'TW_IMAGERY_LOOK', message: why });
  fail('nothing', undefined, 1, /^algorithm "nothing" is not known: there are hillshade/);
  fail('constructor', undefined, 1, /is not known/);
  fail('hillshade', undefined, 3, /needs 1 band, not 3/);
  fail('normalizedIndex', undefined, 3, /needs 2 bands/);
  fail('bitonal', undefined, 2, /needs 1 or 3 bands/);
  fail('sum', undefined, 17, /needs 1 to 16 bands/);
  fail('hillshade', '{', 1, /^algorithm_params is not JSON/);
  fail('hillshade', '[]', 1, /is not a JSON object/);
  fail('hillshade', '{"angle": 1}', 1, /unknown parameter "angle": hillshade has azimuth/);
  fail('sum', '{"a": 1}', 2, /sum has none/);
  fail('hillshade', '{"azimuth": "45"}', 1, /azimuth that is not an integer from 0 to 360/);
  fail('hillshade', '{"azimuth": 361}', 1, /azimuth/);
  fail('hillshade', '{"buffer": 1.5}', 1, /buffer/);
  fail('hillshade', '{"buffer": 1e9}', 1, /buffer/);
  fail('contours', '{"minz": 5, "maxz": 5}', 1, /minz of 5/);
  fail('hillshade', `{"azimuth": ${'1'.repeat(1000)}}`, 1, /longer than 1000/);
  const image = { width: 4, height: 9, planes: [new Float64Array(36)] };
  const shade = parseAlgorithm('hillshade', '{"buffer": 2}', 1);
  assert.throws(() => applyAlgorithm(shade, image, PIXEL, 2), {
    message: /leaves nothing of 4 x 9 pixels/,
  });
});
