/** Random band groups of tiles, including numbers and names that no product has. */
import fc from 'fast-check';
import type { BandRecord, GroupRecord } from '../../src/storage/index.js';

const number = fc.oneof(fc.constantFrom(0, 1, 100, 0.0001, -0.1, -0, 1e21), fc.double());
const name = fc.oneof(
  fc.constantFrom('B04', 'B8A', 'rededge071', '10m'),
  fc.string({ unit: 'binary', minLength: 1, maxLength: 8 }).filter((text) => text !== '__proto__'),
);

const bands: fc.Arbitrary<BandRecord> = fc
  .record({
    name,
    commonName: fc.option(name, { nil: undefined }),
    scale: number,
    offset: number,
    validPercent: number,
    classes: fc.option(fc.array(fc.record({ value: fc.nat(255), name, colour: fc.constant('8DD3C7') })), {
      nil: undefined,
    }),
  })
  .map(({ commonName, classes, ...band }) => ({
    ...band,
    ...(commonName !== undefined && { commonName }),
    ...(classes !== undefined && { classes }),
  }));

/** Bands of an imaging spectrometer: each has a wavelength, and most scales are equal. */
const spectra: fc.Arbitrary<BandRecord[]> = fc
  .record({
    scales: fc.constantFrom([0.0001], [0.0001, 0.5]),
    bands: fc.array(
      fc.record(
        {
          validPercent: number,
          wavelength: fc.double({ min: 400, max: 2500, noNaN: true }),
          fwhm: fc.double({ min: 1, max: 20, noNaN: true }),
          good: fc.constant(false as const),
          commonName: fc.constantFrom('red', 'rededge071'),
        },
        { requiredKeys: ['validPercent', 'wavelength'] },
      ),
      { minLength: 16, maxLength: 18 },
    ),
  })
  .map(({ scales, bands }) =>
    bands.map((band, i) => ({
      ...band,
      name: `b${i + 1}`,
      scale: scales[i % scales.length]!,
      offset: 0,
    })),
  );

const groups: fc.Arbitrary<GroupRecord> = fc
  .record({
    name,
    file: name,
    role: fc.constantFrom('data', 'qa', 'mask'),
    dataType: fc.constantFrom('uint8', 'uint16', 'int16', 'float32'),
    width: fc.integer({ min: 1, max: 10_000 }),
    height: fc.integer({ min: 1, max: 10_000 }),
    nodata: fc.option(fc.oneof(number, fc.constantFrom(NaN, Infinity, -Infinity))),
    codes: fc.boolean(),
    bands: fc.oneof({ arbitrary: fc.array(bands, { maxLength: 4 }), weight: 3 }, spectra),
    sameValid: fc.option(number),
    bytes: fc.nat(),
    crc32: fc.nat(),
  })
  .map(({ codes, sameValid, bands, ...group }) => ({
    ...group,
    ...(codes && { codes: true as const }),
    bands: sameValid === null ? bands : bands.map((band) => ({ ...band, validPercent: sameValid })),
  }));

export const groupLists = fc.array(groups, { maxLength: 4 });
