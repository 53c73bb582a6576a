/** The bands of tiles that models are trained on, and the meaning of their values. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { parseBandRequests, resolveBandRequest } from '../../../src/derive/bands.js';
import {
  findBands,
  parseBandOrExpression,
  resolveBands,
  SPECTRAL_INDICES,
} from '../../../src/expressions/index.js';
import type { GroupRecord, TileRecord } from '../../../src/storage/index.js';
import { acquisitionFiles, commonPixels, trainedPixels, trainingFiles } from '../../../src/training/cells.js';
import { getModelSpec } from '../../../src/training/index.js';
import type { BandName } from '../../../src/training/models/spec.js';

const storage = { tileImage: (_: unknown, path: string) => ({ path, start: 0, bytes: 1 }) };

type Bands = Record<string, string | undefined>;

/** A group whose bands have these common names. */
function group(name: string, side: number, bands: Bands, change: Partial<GroupRecord> = {}): GroupRecord {
  const { dataType = 'uint16' } = change;
  const scaled = dataType === 'uint8' ? { scale: 1, offset: 0 } : { scale: 1e-4, offset: -0.1 };
  const records = Object.entries(bands).map(([band, commonName]) => ({
    name: band,
    ...(commonName && { commonName }),
    ...scaled,
    validPercent: 100,
  }));
  const sizes = { width: side, height: side, bytes: 1, crc32: 1 };
  return { name, file: name, role: 'data', dataType, nodata: 0, ...sizes, ...change, bands: records };
}

const tile = (groups: GroupRecord[], change: Partial<TileRecord> = {}) =>
  ({ id: 't', collection: 'c', start: 0, coverage: 100, cloudCover: 0, ...change, groups }) as TileRecord;

const cell = (...tiles: TileRecord[]) => ({
  ...{ collection: 'c', grid: 'geohash' as const, geocode: 'u0' },
  tiles,
});

const SENTINEL_2 = [
  group('10m', 120, { B02: 'blue', B03: 'green', B04: 'red', B08: 'nir' }),
  group('20m', 60, { B05: 'rededge071', B8A: 'nir08', B11: 'swir16', B12: 'swir22' }),
  group('60m', 20, { B01: 'coastal', B09: 'nir09' }),
];
const LANDSAT = [
  group('15m', 80, { B8: 'pan' }),
  group('30m', 40, { B2: 'blue', B3: 'green', B4: 'red', B5: 'nir08', B6: 'swir16' }),
];
const NAIP = [
  group('0.6m', 200, { red: 'red', green: 'green', blue: 'blue', nir: 'nir' }, { dataType: 'uint8' }),
];
/** A tile with red and shortwave infrared (1.6 um) at two pixel sizes. */
const VIIRS = [
  group('500m', 8, { I1: 'red', I2: 'nir', I3: 'swir16' }),
  group('1000m', 4, { M3: 'blue', M4: 'green', M5: 'red', M7: 'nir08', M10: 'swir16' }),
];

/** Bands of an index of a tile in a model's target, a map or series, and a tensor. */
function bandsOfIndex(groups: GroupRecord[], index: 'ndvi' | 'ndmi') {
  const { target } = getModelSpec(index);
  const names = 'index' in target ? target.index : assert.fail();
  const files = acquisitionFiles(storage, names, tile(groups))!;
  const trained = names.map((name) => {
    const { path, band } = files.bands[name]!;
    return groups.find(({ name }) => name === path)!.bands[band]!.name;
  });
  const named = ({ group, band }: { group: number; band: number }) => groups[group]!.bands[band]!.name;
  const mapped = resolveBands([parseBandOrExpression(index, groups)], groups).indices.map(named);
  const one = tile(groups);
  const stacked = resolveBandRequest(one, parseBandRequests(index, [one]))!.plane.places.map(named);
  return { trained, mapped, stacked };
}

describe('bands of models', () => {
  it('are those of maps, series and tensors', () => {
    for (const [groups, index, bands] of [
      [SENTINEL_2, 'ndmi', ['B8A', 'B11']],
      [SENTINEL_2, 'ndvi', ['B08', 'B04']],
      [LANDSAT, 'ndmi', ['B5', 'B6']],
      [LANDSAT, 'ndvi', ['B5', 'B4']],
      [NAIP, 'ndvi', ['nir', 'red']],
      [VIIRS, 'ndvi', ['I2', 'I1']],
      [VIIRS, 'ndmi', ['M7', 'I3']],
    ] as const)
      assert.deepEqual(bandsOfIndex([...groups], index), { trained: bands, mapped: bands, stacked: bands });
    for (const name of ['ndvi', 'ndmi'] as const) {
      const { target } = getModelSpec(name);
      assert.deepEqual('index' in target && target.index, SPECTRAL_INDICES[name].bands);
    }
  });

  it('are resolved like single names in expressions, whatever bands a tile has', () => {
    const names: BandName[] = ['red', 'green', 'blue', 'nir', 'nir08', 'swir16'];
    const anyGroup = fc.array(fc.option(fc.constantFrom(...names), { nil: undefined }), {
      minLength: 1,
      maxLength: 4,
    });
    fc.assert(
      fc.property(
        fc.array(anyGroup, { minLength: 1, maxLength: 3 }),
        fc.constantFrom(...names),
        (all, name) => {
          const groups = all.map((common, g) =>
            group(`${g}m`, 10, Object.fromEntries(common.map((one, b) => [`G${g}B${b}`, one]))),
          );
          const found = findBands(groups, [name]);
          if (found) {
            const expression = parseBandOrExpression(name, groups);
            assert.deepEqual(resolveBands([expression], groups).indices, found);
            return;
          }
          const other = { nir: 'nir08', nir08: 'nir' }[name as string];
          assert.ok(!all.flat().some((one) => one !== undefined && (one === name || one === other)));
          assert.throws(() => resolveBands([parseBandOrExpression(name, groups)], groups), {
            code: 'TW_IMAGERY_BAND',
          });
        },
      ),
      { seed: 42, numRuns: 300 },
    );
  });
});

describe('pixels of a training', () => {
  it('have the size of the coarsest band group that is read', () => {
    const ofModel = (groups: GroupRecord[], model: string) =>
      trainedPixels(getModelSpec(model), cell(tile(groups)));
    const values = 'reflectance';
    assert.deepEqual(ofModel(SENTINEL_2, 'ndmi'), {
      pixelSize: { group: '20m', width: 60, height: 60 },
      values,
    });
    assert.equal(ofModel(SENTINEL_2, 'ndvi').pixelSize!.group, '10m');
    assert.equal(ofModel(LANDSAT, 'ndmi').pixelSize!.group, '30m');
    assert.deepEqual(ofModel(NAIP, 'ndvi'), {
      pixelSize: { group: '0.6m', width: 200, height: 200 },
      values: 'scaled counts',
    });
  });

  it('are those of paired dates for cloud removal', () => {
    const [fine, coarse] = [10, 20].map((metres) =>
      group(`${metres}m`, 1200 / metres, { r: 'red', g: 'green', b: 'blue' }),
    );
    const day = 86_400_000;
    const dates = cell(
      tile([coarse!], { cloudCover: 80 }),
      tile([fine!], { start: day, cloudCover: 20 }),
      tile([fine!], { start: 2 * day }),
    );
    assert.equal(trainedPixels(getModelSpec('cloud-removal'), dates).pixelSize!.group, '10m');
  });

  it('of one model for many cells are those that the cells have in common', () => {
    const [a, b] = [SENTINEL_2, LANDSAT].map((groups) =>
      trainedPixels(getModelSpec('ndmi'), cell(tile(groups))),
    );
    assert.deepEqual(commonPixels([a!, { ...a!, pixelSize: { group: '20m', width: 9, height: 9 } }]), {
      pixelSize: { group: '20m' },
      values: 'reflectance',
    });
    assert.deepEqual(commonPixels([a!, b!]), { values: 'reflectance' });
  });
});

describe('values of bands', () => {
  const scaleOf = (groups: GroupRecord[]) => {
    const { scale, offset } = acquisitionFiles(storage, ['red'], tile(groups))!.bands.red!;
    return [scale, offset];
  };

  it('of 8 bits without a scale are fractions of 255; others are unchanged', () => {
    assert.deepEqual(scaleOf(NAIP), [1 / 255, 0]);
    assert.deepEqual(scaleOf(LANDSAT), [1e-4, -0.1]);
    for (const dataType of ['int8', 'uint16', 'int16', 'float32'] as const) {
      const [only] = NAIP;
      assert.deepEqual(scaleOf([{ ...only!, dataType }]), [1, 0]);
    }
    const scaled = { ...NAIP[0]!, bands: NAIP[0]!.bands.map((band) => ({ ...band, scale: 0.004 })) };
    assert.deepEqual(scaleOf([scaled]), [0.004, 0]);
  });

  it('must be of one kind in a cell', () => {
    const spec = getModelSpec('ndvi');
    const found = trainingFiles(storage, spec, cell(tile(NAIP), tile(SENTINEL_2)));
    assert.match('skipped' in found ? found.skipped : '', /8-bit numbers without a scale.*--scale/);
    assert.ok('dates' in trainingFiles(storage, spec, cell(tile(NAIP), tile(NAIP, { start: 1 }))));
  });
});
