import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { test } from 'node:test';
import {
  KINDS,
  type LandCover,
  REGIONS,
  SERIES_BANDS,
  SERIES_DATES,
  seriesImage,
  seriesLandscape,
  writeSentinelLikeSeries,
} from '../../data-samples/index.js';
import { readRaster } from '../../src/raster/index.js';
import { atEnd } from '../support/at-end.js';

const size = { width: 330, height: 490 };

/** Share of the land that is of each cover, over several seeds. */
function shares(region: keyof typeof REGIONS): Map<LandCover, number> {
  const counts = new Map<LandCover, number>();
  const seeds = [1000, 2000, 3000, 4000];
  for (const seed of seeds)
    for (const kind of seriesLandscape({ size, seed, region: REGIONS[region] }).kind) {
      const { landCover } = KINDS[kind]!;
      counts.set(landCover, (counts.get(landCover) ?? 0) + 1);
    }
  const pixels = seeds.length * size.width * size.height;
  return new Map([...counts].map(([cover, count]) => [cover, count / pixels]));
}

test('regions have more of what they are called after', () => {
  const share = (region: keyof typeof REGIONS, cover: LandCover) => shares(region).get(cover) ?? 0;
  const mostly: [keyof typeof REGIONS, LandCover, number][] = [
    ['fields', 'crop', 0.4],
    ['fen', 'crop', 0.5],
    ['conifers', 'forest', 0.4],
    ['broadleaf', 'forest', 0.4],
    ['coast', 'water', 0.2],
    ['town', 'town', 0.4],
  ];
  for (const [region, cover, least] of mostly) {
    const found = share(region, cover);
    assert.ok(found >= least, `${region}: ${found} of ${cover}`);
  }
});

test('forests that look alike in colour have an NDVI of their own', () => {
  const date = { datetime: '2023-07-07T10:06:22Z', cloudShare: 0 };
  const forestMean = (
    region: keyof typeof REGIONS,
    of: (i: number, image: ReturnType<typeof seriesImage>) => number,
  ) => {
    const landscape = seriesLandscape({ size, seed: 1000, region: REGIONS[region] });
    const image = seriesImage(landscape, date, { seed: 1000 });
    const forest = [...landscape.kind.keys()].filter(
      (i) => KINDS[landscape.kind[i]!]!.landCover === 'forest',
    );
    return forest.reduce((sum, i) => sum + of(i, image), 0) / forest.length;
  };
  const red = (i: number, image: ReturnType<typeof seriesImage>) => image.red[i]!;
  const nir = (i: number, image: ReturnType<typeof seriesImage>) => image.nir[i]!;
  const ratio = (of: typeof red) => forestMean('broadleaf', of) / forestMean('conifers', of);
  assert.ok(Math.abs(ratio(red) - 1) < 0.1, `red ${ratio(red)}`);
  assert.ok(ratio(nir) > 1.3, `near infrared ${ratio(nir)}`);
});

test('a series lies where it is asked for, under its name, with a band more', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'regions-'));
  atEnd(t, () => rm(folder, { recursive: true }));
  const options = { size: { width: 64, height: 48 }, seed: 5, dates: SERIES_DATES.slice(0, 1) };
  const origin = { x: 400_000, y: 5_200_000 };
  const [plain] = await writeSentinelLikeSeries(join(folder, 'plain'), options);
  const [file] = await writeSentinelLikeSeries(join(folder, 'more'), {
    ...options,
    ...{ origin, name: 'u2', swir16: true },
  });
  assert.equal(basename(file!.path), 'u2_20230418.tif');
  const [a, b] = [await readRaster(plain!.path), await readRaster(file!.path)];
  const { originX, originY } = b.header.transform;
  assert.deepEqual({ x: originX, y: originY }, origin);
  assert.deepEqual(
    b.header.bandTags.map(({ description }) => description),
    [...SERIES_BANDS, 'swir16'],
  );
  assert.deepEqual(b.bands.slice(0, SERIES_BANDS.length), a.bands);
  const made = seriesImage(seriesLandscape(options), options.dates[0]!, { seed: 5, swir16: true });
  assert.deepEqual(b.bands[SERIES_BANDS.length], made.swir16);
});
