import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { fromFile } from 'geotiff';
import {
  KINDS,
  type LandCover,
  type Landscape,
  SERIES_BANDS,
  SERIES_DATES,
  type SeriesFile,
  type SeriesImage,
  seriesImage,
  seriesLandscape,
  writeSentinelLikeSeries,
} from '../../data-samples/index.js';

const size = { width: 260, height: 200 };
const hasGdal = spawnSync('gdalinfo', ['--version']).status === 0;

describe('the sentinel-like series as files', () => {
  let folder: string;
  let files: SeriesFile[];
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'samples-'));
    files = await writeSentinelLikeSeries(join(folder, 'a'), { size });
  });
  after(() => rm(folder, { recursive: true }));

  it('is the same byte by byte each time, and another with another seed', async () => {
    const digest = async (path: string) =>
      createHash('sha256')
        .update(await readFile(path))
        .digest('hex');
    const again = await writeSentinelLikeSeries(join(folder, 'b'), { size });
    const other = await writeSentinelLikeSeries(join(folder, 'c'), { size, seed: 5 });
    for (const [i, file] of files.entries()) {
      assert.equal(await digest(file.path), await digest(again[i]!.path));
      assert.notEqual(await digest(file.path), await digest(other[i]!.path));
    }
  });

  it('opens in geotiff.js where it lies, with the pixels that were made', async () => {
    const landscape = seriesLandscape({ size });
    for (const [i, file] of files.entries()) {
      const tiff = await fromFile(file.path);
      const image = await tiff.getImage();
      assert.equal(image.getWidth(), size.width);
      assert.equal(image.getHeight(), size.height);
      assert.equal(image.getSamplesPerPixel(), SERIES_BANDS.length);
      assert.equal(image.getGDALNoData(), 0);
      assert.deepEqual(image.getOrigin().slice(0, 2), [493_550, 5_301_460]);
      assert.deepEqual(image.getResolution().slice(0, 2), [10, -10]);
      assert.equal(image.getGeoKeys()?.ProjectedCSTypeGeoKey, 32_633);
      const bands = await image.readRasters();
      const made = seriesImage(landscape, SERIES_DATES[i]!);
      for (const [b, name] of SERIES_BANDS.entries()) assert.deepEqual(bands[b], made[name]);
      tiff.close();
    }
  });

  it('says when it was taken and what its bands are, to GDAL as well', {
    skip: hasGdal ? false : 'gdalinfo is not on PATH',
  }, () => {
    const info = JSON.parse(execFileSync('gdalinfo', ['-json', files[0]!.path], { encoding: 'utf8' }));
    assert.deepEqual(info.geoTransform, [493_550, 10, 0, 5_301_460, 0, -10]);
    assert.match(info.coordinateSystem.wkt, /ID\["EPSG",32633\]\]$/);
    assert.equal(info.metadata[''].ACQUISITION_DATETIME, files[0]!.datetime);
    assert.deepEqual(
      info.bands.map((band: { description: string }) => band.description),
      [...SERIES_BANDS],
    );
    assert.equal(info.bands[3].scale, 0.0001);
  });
});

describe('the pixels of the sentinel-like series', () => {
  const landscape = seriesLandscape({ size: { width: 900, height: 800 } });
  const images = SERIES_DATES.map((date) => seriesImage(landscape, date));
  const [april, may, july, september] = images as [SeriesImage, SeriesImage, SeriesImage, SeriesImage];

  it('has an NDVI that fits each land cover', () => {
    const ranges: Record<LandCover, [low: number, high: number]> = {
      water: [-0.3, 0],
      bare: [0.08, 0.2],
      town: [0.1, 0.3],
      // Broad leaves unfold and meadows become green in April.
      forest: [0.6, 0.85],
      meadow: [0.45, 0.8],
      crop: [0.15, 0.8],
    };
    for (const image of [april, july, september]) {
      for (const [landCover, mean] of meanNdvi(landscape, image)) {
        const [low, high] = ranges[landCover];
        assert.ok(mean >= low && mean <= high, `${landCover}: ${mean}`);
      }
    }
    assert.equal(meanNdvi(landscape, july).size, 6);
  });

  it('has crops that change with the season and water that does not', () => {
    const change = (landCover: LandCover) =>
      Math.abs(meanNdvi(landscape, april).get(landCover)! - meanNdvi(landscape, september).get(landCover)!);
    assert.ok(change('crop') > 3 * change('water'));
  });

  it('marks as cloud what is bright, and about as much as asked for', () => {
    const shares = images.map((image) => mean(image.cloud, (i) => image.red[i]! > 0));
    assert.ok(shares[0]! > 0.08 && shares[0]! < 0.16, `${shares[0]}`);
    assert.ok(shares[1]! > 0.4 && shares[1]! < 0.6, `${shares[1]}`);
    assert.ok(shares[2]! < 0.02, `${shares[2]}`);
    const cloudy = mean(may.blue, (i) => may.cloud[i] === 1);
    const clear = mean(may.blue, (i) => may.cloud[i] === 0);
    assert.ok(cloudy > 4 * clear, `${cloudy} against ${clear}`);
    const darkClouds = share(
      may.blue.length,
      (i) => may.cloud[i] === 1,
      (i) => may.blue[i]! < 1200,
    );
    assert.ok(darkClouds < 0.01, `${darkClouds}`);
  });

  it('lacks one wedge of one date in all bands, and nothing else', () => {
    for (const image of [april, may, july]) assert.ok(image.nir.every((value) => value > 0));
    const { width } = landscape.view;
    const missing = (row: number) =>
      september.red.subarray(row * width, (row + 1) * width).filter((value) => value === 0).length;
    assert.ok(missing(0) > 0.2 * width && missing(799) < 0.1 * width && missing(799) > 0);
    for (let i = 0; i < september.red.length; i++) {
      const empty = september.red[i] === 0;
      assert.equal(september.nir[i] === 0, empty);
      if (empty) assert.equal(september.cloud[i], 0);
    }
  });

  it('keeps near infrared from being a function of colour', () => {
    // Pixels of one red, green and blue (each to 0.002) still differ in NDVI, by more than noise would make them.
    const groups = new Map<number, number[]>();
    for (let i = 0; i < july.red.length; i++) {
      const colour = (july.red[i]! / 20) | 0;
      const key = (colour * 1024 + ((july.green[i]! / 20) | 0)) * 1024 + ((july.blue[i]! / 20) | 0);
      groups.set(key, [...(groups.get(key) ?? []), ndvi(july, i)].slice(-400));
    }
    const large = [...groups.values()].filter((values) => values.length >= 200);
    const spreads = large.map((values) => Math.sqrt(variance(values)));
    assert.ok(large.length > 20);
    assert.ok(Math.max(...spreads) > 0.05, `${Math.max(...spreads)}`);
  });
});

function ndvi({ red, nir }: SeriesImage, i: number): number {
  return (nir[i]! - red[i]!) / (nir[i]! + red[i]!);
}

/** Mean over clear pixels that hold data, by land cover. */
function meanNdvi(landscape: Landscape, image: SeriesImage): Map<LandCover, number> {
  const sums = new Map<LandCover, { sum: number; count: number }>();
  for (let i = 0; i < image.red.length; i++) {
    if (image.red[i] === 0 || image.cloud[i] === 1) continue;
    const { landCover } = KINDS[landscape.kind[i]!]!;
    const entry = sums.get(landCover) ?? { sum: 0, count: 0 };
    sums.set(landCover, { sum: entry.sum + ndvi(image, i), count: entry.count + 1 });
  }
  return new Map([...sums].map(([landCover, { sum, count }]) => [landCover, sum / count]));
}

function mean(values: ArrayLike<number>, where: (i: number) => boolean): number {
  let sum = 0;
  let count = 0;
  for (let i = 0; i < values.length; i++) {
    if (!where(i)) continue;
    sum += values[i]!;
    count++;
  }
  return sum / count;
}

/** Share of the indices in `of` that are also in `which`. */
function share(length: number, of: (i: number) => boolean, which: (i: number) => boolean): number {
  return mean(
    Uint8Array.from({ length }, (_, i) => (which(i) ? 1 : 0)),
    of,
  );
}

function variance(values: number[]): number {
  const centre = values.reduce((sum, value) => sum + value, 0) / values.length;
  return values.reduce((sum, value) => sum + (value - centre) ** 2, 0) / values.length;
}
