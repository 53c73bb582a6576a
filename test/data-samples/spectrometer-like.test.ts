/** The spectrometer-like cubes beside their own truth, and as GDAL and Spectral Python read them. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, it, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import {
  type CubeFiles,
  type CubeOptions,
  type CubeScene,
  cubeScene,
  ENDMEMBERS,
  writeSpectrometerLikeSeries,
} from '../../data-samples/index.js';
import { createTransform, crsFromEpsg, readRaster } from '../../src/raster/index.js';
import { installPython, outputOf } from '../conformance/python.js';
import { gdal, needsGdal } from '../raster/gdal.js';
import { finished } from '../support/command.js';
import { ingest, testNode, tilesOf } from '../support/node.js';
import { tempFolder } from '../support/temp.js';

const options: CubeOptions = { size: { width: 130, height: 150 }, dates: 2, bands: 40 };
const cleanUp: (() => Promise<void>)[] = [];
let folder: string;
let files: CubeFiles;
let scene: CubeScene;

before(async () => {
  folder = await tempFolder({ after: (work) => void cleanUp.push(work as () => Promise<void>) });
  scene = cubeScene(options);
  files = await writeSpectrometerLikeSeries(join(folder, 'cubes'), options);
});
after(async () => {
  for (const work of cleanUp) await work();
});

async function digestsOf(cubes: string): Promise<Map<string, string>> {
  const digests = new Map<string, string>();
  for (const root of [cubes, `${cubes}-truth`])
    for (const name of await readdir(root)) {
      const bytes = await readFile(join(root, name));
      digests.set(name, createHash('sha256').update(bytes).digest('hex'));
    }
  return digests;
}

test('the same seed gives the same bytes, and another seed other pixels', async () => {
  const wanted = await digestsOf(join(folder, 'cubes'));
  assert.equal(wanted.size, 2 * 2 + 7);
  await writeSpectrometerLikeSeries(join(folder, 'again'), options);
  assert.deepEqual(await digestsOf(join(folder, 'again')), wanted);
  await writeSpectrometerLikeSeries(join(folder, 'other'), { ...options, seed: 5 });
  const other = await digestsOf(join(folder, 'other'));
  for (const [name, digest] of wanted)
    if (!/\.hdr$|\.sli$/.test(name)) assert.notEqual(other.get(name), digest, name);
});

for (const bands of [16, 40, 100, 224])
  test(`endmembers in ${bands} bands are at least 6 degrees apart and between 0 and 1`, () => {
    const { good, spectra } = cubeScene({ bands, size: { width: 16, height: 16 } });
    assert.ok(good.filter((one) => !one).length >= 2);
    const used = spectra.map((spectrum) => spectrum.filter((_, band) => good[band]));
    const dot = (a: number[], b: number[]) => a.reduce((sum, value, band) => sum + value * b[band]!, 0);
    for (const [i, a] of used.entries()) {
      assert.ok(a.every((value) => value > 0 && value < 1));
      for (const b of used.slice(0, i)) {
        const degrees = (Math.acos(dot(a, b) / Math.sqrt(dot(a, a) * dot(b, b))) * 180) / Math.PI;
        assert.ok(degrees >= 6, `${degrees} degrees`);
      }
    }
  });

describe('the truth of a scene', () => {
  it('has abundances that sum to one, vary smoothly, and are pure in some pixels of each endmember', () => {
    const { abundances, width, height } = scene;
    const steps: number[] = [];
    const pure = abundances.map((one) => one.filter((share) => share === 1).length);
    for (let i = 0; i < width * height; i++) {
      const sum = abundances.reduce((total, one) => total + one[i]!, 0);
      assert.ok(Math.abs(sum - 1) < 1e-6);
      const mixed = (at: number) => abundances.every((one) => one[at]! < 1);
      if ((i + 1) % width > 0 && mixed(i) && mixed(i + 1))
        steps.push(Math.max(...abundances.map((one) => Math.abs(one[i]! - one[i + 1]!))));
    }
    assert.ok(
      pure.every((count) => count >= 4 * 8),
      `${pure}`,
    );
    const mean = steps.reduce((sum, step) => sum + step, 0) / steps.length;
    assert.ok(mean < 0.03 && Math.max(...steps) < 0.15, `${mean} ${Math.max(...steps)}`);
  });

  it('has a class for each pixel: the endmember with the largest share', () => {
    const { abundances, classes } = scene;
    for (const [i, code] of classes.entries())
      assert.ok(abundances.every((one) => one[i]! <= abundances[code - 1]![i]!));
    assert.equal(new Set(classes).size, ENDMEMBERS.length);
  });

  it('has label polygons in which every pixel is of their class', async () => {
    const { features } = JSON.parse(await readFile(files.labels, 'utf8'));
    assert.ok(new Set(features.map(({ properties }: Label) => properties.class)).size >= 4);
    const { header } = await readRaster(files.classes);
    const toMap = createTransform('EPSG:4326', crsFromEpsg(32_633));
    for (const { properties, geometry } of features as Label[]) {
      assert.equal(ENDMEMBERS[properties.code - 1]!.name, properties.class);
      const corners = geometry.coordinates[0]!.map(([lon, lat]) => toMap(lon!, lat!));
      const columns = corners.map(([x]) => (x - header.transform.originX) / header.transform.xx);
      const rows = corners.map(([, y]) => (y - header.transform.originY) / header.transform.yy);
      let pixels = 0;
      for (let row = 0; row < scene.height; row++)
        for (let column = 0; column < scene.width; column++) {
          const inside =
            column + 0.5 > Math.min(...columns) &&
            column + 0.5 < Math.max(...columns) &&
            row + 0.5 > Math.min(...rows) &&
            row + 0.5 < Math.max(...rows);
          if (!inside) continue;
          pixels++;
          assert.equal(scene.classes[row * scene.width + column], properties.code);
        }
      assert.equal(pixels, 64);
    }
  });
});

interface Label {
  properties: { class: string; code: number };
  geometry: { coordinates: number[][][] };
}

/** Cube minus mixture, reflectance, in the good bands of one date. */
async function noiseOf(path: string, { spectra, abundances, good }: CubeScene): Promise<number[][]> {
  const { bands, header } = await readRaster(path);
  assert.deepEqual(
    header.bandTags.map((tags) => tags.good !== false),
    good,
  );
  return bands.flatMap((band, b) => {
    if (!good[b]) return [];
    const clean = (i: number) => spectra.reduce((sum, one, k) => sum + one[b]! * abundances[k]![i]!, 0);
    return [Array.from(band, (value, i) => value / 10_000 - clean(i))];
  });
}

const meanOf = (values: number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;
const product = (a: number[], b: number[]) => meanOf(a.map((value, i) => value * b[i]!));

for (const snr of [20, 30, 40])
  test(`the noise of ${snr} dB is white, nearly normal, and another on each date`, async () => {
    const { cubes } = await writeSpectrometerLikeSeries(join(folder, `snr${snr}`), { ...options, snr });
    const noisy = cubeScene({ ...options, snr });
    const [first, second] = [await noiseOf(cubes[0]!.path, noisy), await noiseOf(cubes[1]!.path, noisy)];
    const power = meanOf(first.map((band) => product(band, band)));
    const { abundances } = noisy;
    const clean = noisy.spectra.map((spectrum) => spectrum.filter((_, band) => noisy.good[band]));
    const signal = meanOf(
      first.map((_, b) =>
        meanOf(
          Array.from(noisy.classes, (_, i) =>
            clean.reduce((sum, one, k) => sum + one[b]! * abundances[k]![i]!, 0),
          ).map((value) => value * value),
        ),
      ),
    );
    assert.ok(Math.abs(10 * Math.log10(signal / power) - snr) < 0.1);
    for (const [b, band] of first.entries()) {
      assert.ok(Math.abs(meanOf(band)) < 0.04 * noisy.noise);
      assert.ok(Math.abs(product(band, second[b]!)) < 0.04 * power);
      if (b > 0) assert.ok(Math.abs(product(band, first[b - 1]!)) < 0.04 * power);
    }
    const all = first.flat();
    const kurtosis = meanOf(all.map((value) => value ** 4)) / power ** 2;
    assert.ok(Math.abs(kurtosis - 3) < 0.15, `${kurtosis}`);
  });

test('GDAL reads position, bands and class names', needsGdal, () => {
  const image = files.cubes[0]!.path.replace('.hdr', '.bil');
  const info = JSON.parse(gdal('gdalinfo', '-json', image));
  assert.deepEqual(
    info.geoTransform.map((value: number) => value + 0),
    [493_550, 20, 0, 5_301_460, 0, -20],
  );
  assert.deepEqual(info.size, [130, 150]);
  const found = info.bands.map((band: { metadata: Record<string, { wavelength: string }> }) =>
    Number(band.metadata['']!.wavelength),
  );
  assert.deepEqual(found, scene.wavelengths);
  const classes = gdal('gdalinfo', files.classes);
  for (const [i, { name }] of ENDMEMBERS.entries()) assert.match(classes, new RegExp(`${i + 1}: ${name}\n`));
  const shares = JSON.parse(gdal('gdalinfo', '-json', files.abundances));
  assert.deepEqual(
    shares.bands.map(({ type, description }: Record<string, string>) => [type, description]),
    ENDMEMBERS.map(({ name }) => ['Float32', name]),
  );
});

const SPY = `
import json, sys
import spectral.io.envi as envi
library = envi.open(sys.argv[1])
image = envi.open(sys.argv[2])
print(json.dumps({
    'names': library.names, 'spectra': library.spectra.tolist(), 'wavelengths': library.bands.centers,
    'bbl': [int(v) for v in image.metadata['bbl']], 'pixel': image.open_memmap()[70, 60].tolist(),
}))`;

test('Spectral Python reads the library and the cubes', async (t) => {
  const python = await installPython(join(folder, 'python'), ['spectral==0.25']);
  if (python.reason !== undefined) return t.skip(python.reason);
  const headers = [files.endmembers.replace('.sli', '.hdr'), files.cubes[1]!.path];
  const read = JSON.parse(await outputOf(join(python.bin, 'python'), ['-c', SPY, ...headers]));
  assert.deepEqual(
    read.names,
    ENDMEMBERS.map(({ name }) => name),
  );
  assert.deepEqual(read.wavelengths, scene.wavelengths);
  assert.deepEqual(
    read.spectra,
    scene.spectra.map((spectrum) => spectrum.map(Math.fround)),
  );
  assert.deepEqual(read.bbl, scene.good.map(Number));
  const { bands } = await readRaster(files.cubes[1]!.path);
  assert.deepEqual(
    read.pixel,
    bands.map((band) => band[70 * 130 + 60]),
  );
});

test('an ingest of the folder makes tiles of every date, and leaves the truth alone', async (t) => {
  const node = await testNode(t, join(folder, 'data'));
  const inputs = { href: join(folder, 'cubes'), collection: 'cubes', precision: 5 };
  const { failed, scenes } = await ingest(node, inputs);
  assert.deepEqual(failed, []);
  assert.equal(scenes.length, 2);
  const tiles = await tilesOf(node);
  assert.ok(new Set(tiles.map(({ geocode }) => geocode)).size >= 4);
  assert.equal(new Set(tiles.map(({ start }) => start)).size, 2);
});

const PROGRAM = fileURLToPath(new URL('../../data-samples/main.js', import.meta.url));
const program = (...args: string[]) => finished(spawn(process.execPath, [PROGRAM, ...args]));

test('the program writes cubes by flags, and refuses what it does not know', async () => {
  const target = join(folder, 'by-flags');
  const flags = ['--seed', '5', '--size', '40x30', '--dates', '1', '--bands', '20', '--snr', '25'];
  const { code, stdout } = await program(target, 'spectrometer-like', ...flags);
  assert.equal(code, 0);
  const [header] = stdout.split('\n');
  const { header: cube } = await readRaster(header!);
  assert.deepEqual([cube.width, cube.height, cube.bands], [40, 30, 20]);
  for (const wrong of [
    ['--snr', 'x'],
    ['--bands', '3'],
    ['--size', '40'],
    ['--dates', '1.5'],
    ['--other', '1'],
  ])
    assert.equal((await program(target, 'spectrometer-like', ...wrong)).code, 2, wrong.join(' '));
  assert.equal((await program(target, '--seed', '5')).code, 2);
});
