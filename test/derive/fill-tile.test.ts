/** Fill compared with a naive reference that goes pixel by pixel and date by date in physical values. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import fc from 'fast-check';
import { DerivePool, type DeriveResults, fillProcess } from '../../src/derive/index.js';
import { localQueries } from '../../src/dht/index.js';
import { cellSizeMetres, gridByName } from '../../src/grid/index.js';
import { TileFinder } from '../../src/query/index.js';
import { Mask, type PixelArray } from '../../src/raster/index.js';
import { Storage, type TileRecord, verify } from '../../src/storage/index.js';
import { atEnd } from '../support/at-end.js';
import { tempFolder } from '../support/temp.js';
import {
  assertDataParts,
  DAY,
  derivedTiles,
  type GivenScene,
  pixelsOf,
  randomly,
  runProcess,
  storeScene,
} from './tiles.js';

const WIDTH = 24;
const HEIGHT = 16;
const CODES = [Mask.nodata, Mask.clear, Mask.cloud, Mask.shadow, Mask.snow, Mask.notAssessed];

/** A date of two groups, 10m and 20m, whose values are stored in one of three ways. */
function sceneOf(id: string, day: number, seed: number, weights: number[], coding: number): GivenScene {
  const random = randomly(seed);
  const [scale, offset] = [
    [0.0001, 0],
    [0.0001, -0.1],
    [0.0002, 0.05],
  ][coding]!;
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  const mask = Uint8Array.from({ length: WIDTH * HEIGHT }, () => {
    const drawn = random() * total;
    const below = (n: number) => weights.slice(0, n + 1).reduce((sum, weight) => sum + weight, 0);
    return CODES.find((_, n) => drawn < below(n)) ?? Mask.clear;
  });
  const pixels = (width: number, height: number, holes: boolean) =>
    Uint16Array.from({ length: width * height }, (_, i) =>
      (holes && mask[i] === Mask.nodata) || random() < 0.1 ? 0 : 2000 + Math.floor(random() * 5000),
    );
  const group = (name: string, width: number, height: number, bands: string[]) => ({
    name,
    width,
    height,
    bands: bands.map((band) => ({
      name: band,
      scale,
      offset,
      pixels: pixels(width, height, name === '10m'),
    })),
  });
  const groups = [group('10m', WIDTH, HEIGHT, ['red', 'nir']), group('20m', WIDTH / 2, HEIGHT / 2, ['swir'])];
  return { id, day, tiles: [{ geocode: '9q8yyk', groups, mask }] };
}

const process_ = (storage: Storage, workers: DerivePool) =>
  fillProcess({ storage, finder: new TileFinder(storage, localQueries(storage.index)), workers });

const percentOf = (codes: Uint8Array, is: (code: number) => boolean, of: (code: number) => boolean) => {
  const all = [...codes].filter(of).length;
  return all === 0 ? null : (100 * [...codes].filter((code) => of(code) && is(code)).length) / all;
};
const coverageOf = (codes: Uint8Array) =>
  percentOf(
    codes,
    (code) => code !== 0,
    () => true,
  ) as number;
const cloudOf = (codes: Uint8Array) =>
  percentOf(
    codes,
    (code) => code === 2,
    (code) => code >= 1 && code <= 6,
  );

const CELL = cellSizeMetres(gridByName('geohash'), '9q8yyk');

/** Clear and unassessed pixels at most so many metres, and at least a pixel, from cloud or shadow count as that. */
function widened(codes: Uint8Array, metres: number): Uint8Array {
  if (metres === 0) return codes;
  const [x, y] = [Math.max(1, (metres * WIDTH) / CELL.width), Math.max(1, (metres * HEIGHT) / CELL.height)];
  return codes.map((code, at) => {
    if (code !== Mask.clear && code !== Mask.notAssessed) return code;
    const isNear = (wanted: number) =>
      codes.some((other, i) => {
        const across = (i % WIDTH) - (at % WIDTH);
        const down = Math.floor(i / WIDTH) - Math.floor(at / WIDTH);
        return other === wanted && (across / x) ** 2 + (down / y) ** 2 <= 1 + 1e-12;
      });
    return isNear(Mask.cloud) ? Mask.cloud : isNear(Mask.shadow) ? Mask.shadow : code;
  });
}

/** The rules of the documentation, applied pixel by pixel and band by band. `stored`: by tile, the bands of each group. */
function oracle(
  base: TileRecord,
  masks: Map<string, Uint8Array>,
  stored: Map<string, PixelArray[][]>,
  others: TileRecord[],
  { toCoverage: cover, toCloud: cloud, dilate }: { toCoverage: number; toCloud: number; dilate: number },
) {
  const donors = others.filter(({ start }) => Math.abs(start - base.start) <= 16 * DAY);
  donors.sort(
    (a, b) =>
      (a.cloudCover ?? 1e9) - (b.cloudCover ?? 1e9) ||
      Math.abs(a.start - base.start) - Math.abs(b.start - base.start) ||
      (a.id < b.id ? -1 : 1),
  );
  const own = masks.get(base.id)!;
  const mask = [...widened(own, dilate)];
  const from: (string | null)[] = mask.map((code) => (code === 0 ? null : base.id));
  const used = [base.id];
  // Rims of donors fill what is left of the cloud itself.
  for (const metres of dilate === 0 ? [0] : [dilate, 0]) {
    if (metres !== dilate) for (const [i, code] of own.entries()) if (from[i] === base.id) mask[i] = code;
    fillBy(metres);
  }
  const codes = Uint8Array.from(mask, (code, i) => (from[i] === base.id ? own[i]! : code));
  /** By group, band and pixel: the tile that gives the value; null for a gap. */
  const sources = stored.get(base.id)!.map((bands, g) => {
    const fine = (i: number) => {
      if (g === 0) return i;
      const [row, column] = [Math.floor((2 * i) / WIDTH), i % (WIDTH / 2)];
      return (2 * row + 1) * WIDTH + 2 * column + 1;
    };
    const given = bands.map((band, b) =>
      Array.from(band, (_, i) => {
        const id = from[fine(i)] ?? base.id;
        return stored.get(id)![g]![b]![i] === 0 ? null : id;
      }),
    );
    const size = bands[0]!.length;
    const covered = () =>
      (100 * bands[0]!.filter((_, i) => given.every((band) => band[i] !== null)).length) / size;
    for (const kind of [[1, 4], [255]])
      for (const { id } of donors) {
        if (covered() >= cover) break;
        const theirs = widened(masks.get(id)!, dilate);
        for (const [b, band] of given.entries())
          for (const [i, source] of band.entries()) {
            const gap = source === null && [1, 4, 6, 255].includes(codes[fine(i)]!);
            if (!gap || !kind.includes(theirs[fine(i)]!) || stored.get(id)![g]![b]![i] === 0) continue;
            band[i] = id;
            if (!used.includes(id)) used.push(id);
          }
      }
    return given;
  });
  const finished = codes.map((code, i) => {
    const [row, column] = [Math.floor(i / WIDTH), i % WIDTH];
    const coarse = Math.floor(row / 2) * (WIDTH / 2) + Math.floor(column / 2);
    const values = sources.flatMap((bands, g) => bands.map((band) => band[g === 0 ? i : coarse]));
    if (values.every((id) => id === null)) return Mask.nodata;
    if (code !== Mask.nodata) return code;
    const around = codes.filter(
      (_, at) => Math.abs(Math.floor(at / WIDTH) - row) <= 1 && Math.abs((at % WIDTH) - column) <= 1,
    );
    return [Mask.cloud, Mask.shadow].find((doubtful) => around.includes(doubtful)) ?? Mask.notAssessed;
  });
  return { mask: finished, from, used, sources };

  function fillBy(metres: number) {
    for (const { id } of donors) {
      if (coverageOf(Uint8Array.from(mask)) >= cover && (cloudOf(Uint8Array.from(mask)) ?? 100) <= cloud)
        break;
      const donor = widened(masks.get(id)!, metres);
      let gave = false;
      for (const [i, code] of mask.entries()) {
        const theirs = donor[i]!;
        const fits =
          ([0, 2, 3, 255].includes(code) && [1, 4].includes(theirs)) ||
          (code === 0 && theirs === Mask.notAssessed);
        if (!fits) continue;
        mask[i] = theirs === Mask.clear ? Mask.otherDate : theirs;
        from[i] = id;
        gave = true;
      }
      if (gave && !used.includes(id)) used.push(id);
    }
  }
}

/** The warnings of a filled tile, of its mask and the number of its pixels of other dates. */
function expectedWarnings(
  { coverage, cloudCover }: TileRecord,
  mask: Uint8Array,
  replaced: number,
  { toCoverage, toCloud }: { toCoverage: number; toCloud: number },
): string[] | undefined {
  const count = (...codes: number[]) => mask.filter((code) => codes.includes(code)).length;
  const share = (number: number) => (100 * number) / (mask.length - count(Mask.nodata));
  const text = (percent: number) => `${percent < 0.1 ? 'less than 0.1' : percent.toFixed(1)} %`;
  const cloudy = count(Mask.cloud, Mask.shadow);
  const unknown = count(Mask.notAssessed);
  const covered = `${(Math.floor(10 * coverage) / 10).toFixed(1)} %`;
  const all = [
    replaced > 0 && `${text(share(replaced))} of the pixels are of other dates`,
    cloudy > 0 && `${text(share(cloudy))} of the pixels are still cloud or cloud shadow`,
    unknown > 0 && `${text(share(unknown))} of the pixels were not assessed for cloud, so they may be cloud`,
    coverage < toCoverage && `${covered} of the cell holds data, below the target of ${toCoverage} %`,
    cloudCover !== null &&
      cloudCover > toCloud &&
      `${text(cloudCover)} of the assessed pixels are cloud, above the target of ${toCloud} %`,
  ].filter((one) => typeof one === 'string');
  return all.length > 0 ? all : undefined;
}

test('fill chooses the same pixels as a naive loop over pixels and dates', async (t) => {
  const dir = await tempFolder(t);
  const workers = new DerivePool(1);
  atEnd(t, () => workers.close());
  let run = 0;
  const date = fc.record({
    day: fc.integer({ min: 0, max: 30 }),
    seed: fc.integer({ min: 1, max: 1e6 }),
    weights: fc.tuple(...[3, 4, 3, 1, 1, 1].map((most) => fc.integer({ min: 0, max: most }))),
    coding: fc.integer({ min: 0, max: 2 }),
  });
  const property = fc.asyncProperty(
    fc.array(date, { minLength: 2, maxLength: 5 }),
    fc.constantFrom(0, 50, 90, 100),
    fc.constantFrom(0, 10, 60),
    fc.constantFrom(0, 10, 75, 130),
    async (dates, toCoverage, toCloud, dilate) => {
      const inputs = { toCoverage, toCloud, dilate };
      const storage = await Storage.open(join(dir, `run${run++}`), { reserve: 0 });
      try {
        const tiles: TileRecord[] = [];
        for (const [i, { day, seed, weights, coding }] of dates.entries())
          tiles.push(...(await storeScene(storage, sceneOf(`s${i}`, day, seed, [...weights], coding))));
        const results = await runProcess<DeriveResults>(storage, process_(storage, workers), inputs);
        const made = await derivedTiles(storage, 'filled');
        assert.equal(made.length, results.tiles);
        assert.equal(results.failures, 0);
        await assertDataParts(storage);
        const masks = new Map<string, Uint8Array>();
        const bands = new Map<string, PixelArray[][]>();
        for (const tile of [...tiles, ...made]) {
          masks.set(tile.id, (await pixelsOf(storage, tile, 'mask'))[0] as Uint8Array);
          bands.set(tile.id, [await pixelsOf(storage, tile, '10m'), await pixelsOf(storage, tile, '20m')]);
        }
        const rims = { clear: 0, replaced: 0 };
        for (const tile of made) {
          const base = tiles.find(({ id }) => id === tile.derivedFrom[0])!;
          const others = tiles.filter((other) => other !== base);
          const { mask, from, used, sources } = oracle(base, masks, bands, others, inputs);
          for (const [i, code] of masks.get(base.id)!.entries()) {
            if (code !== Mask.clear) continue;
            rims.clear++;
            if (from[i] !== base.id) rims.replaced++;
          }
          assert.deepEqual(tile.derivedFrom, used);
          assert.deepEqual(masks.get(tile.id), mask);
          const provenance = await pixelsOf(storage, tile, 'provenance');
          const group = tile.groups.find(({ name }) => name === 'provenance')!;
          const ofPixels = from.map((id) => (id === null ? 255 : used.indexOf(id)));
          assert.deepEqual([...provenance[0]!], ofPixels);
          for (const [b, { name }] of group.bands.entries()) {
            if (b === 0) continue;
            const band = ['red', 'nir', 'swir'].findIndex((one) => name === `source_index_${one}`);
            const ofBand = sources[band < 2 ? 0 : 1]![band < 2 ? band : 0]!;
            const expected = ofPixels.map((pixel, i) => {
              const coarse = Math.floor(i / WIDTH / 2) * (WIDTH / 2) + Math.floor((i % WIDTH) / 2);
              const id = ofBand[band < 2 ? i : coarse];
              const whole =
                from[
                  band < 2
                    ? i
                    : (2 * Math.floor(i / WIDTH / 2) + 1) * WIDTH + 2 * Math.floor((i % WIDTH) / 2) + 1
                ];
              return id == null || id === (whole ?? base.id) ? pixel : used.indexOf(id);
            });
            assert.deepEqual([...provenance[b]!], expected);
          }
          for (const g of [0, 1]) {
            const { scale, offset } = base.groups[g]!.bands[0]!;
            const groupBands = bands.get(tile.id)![g]!;
            for (const [b, band] of groupBands.entries())
              for (const [i, stored] of band.entries()) {
                const at = sources[g]![b]![i];
                if (at == null) {
                  assert.equal(stored, 0);
                  continue;
                }
                const given = bands.get(at)![g]![b]![i]!;
                const coding = tiles.find(({ id }) => id === at)!.groups[g]!.bands[b]!;
                const physical = given * coding.scale + coding.offset;
                const expected = Math.round((physical - offset) / scale);
                assert.ok(
                  Math.abs(stored - expected) <= (coding.scale === scale && coding.offset === offset ? 0 : 1),
                );
              }
          }
          assert.equal(tile.cloudCover, cloudOf(mask));
          // Snow and pixels that were not assessed count, although they keep their codes.
          const replaced = mask.filter(
            (code, i) => code !== Mask.nodata && provenance.some((plane) => plane[i]! > 0 && plane[i]! < 255),
          ).length;
          const withData = mask.filter((code) => code !== Mask.nodata).length;
          assert.equal(tile.otherDates, replaced === 0 ? undefined : (100 * replaced) / withData);
          assert.deepEqual(tile.warnings, expectedWarnings(tile, mask, replaced, inputs));
          const holds = ([red, nir, swir]: (string | null | undefined)[]) => red && nir && swir;
          const complete = from.filter((_, i) => {
            const coarse = Math.floor(i / WIDTH / 2) * (WIDTH / 2) + Math.floor((i % WIDTH) / 2);
            return holds([sources[0]![0]![i], sources[0]![1]![i], sources[1]![0]![coarse]]);
          });
          assert.equal(tile.coverage, (100 * complete.length) / from.length);
          assert.equal(tile.source, 'filled');
          assert.match(tile.id, new RegExp(`^${base.id}_filled-[0-9a-f]{10}$`));
          assert.equal(
            tile.groups.find(({ name }) => name === '10m')!.bands[0]!.validPercent,
            (100 * sources[0]![0]!.filter((id) => id !== null).length) / from.length,
          );
        }
        assert.deepEqual(results.rims, made.length > 0 ? rims : undefined);
        const again = await runProcess<DeriveResults>(storage, process_(storage, workers), inputs);
        assert.deepEqual([again.tiles, again.unchanged], [0, made.length]);
        const report = await verify(storage);
        assert.deepEqual([report.problemCount, report.orphanCount], [0, 0]);
      } finally {
        await storage.close();
      }
    },
  );
  await fc.assert(property, { seed: 42, numRuns: 15 });
});
