/** Spectral libraries and their spectra at the bands of an instrument. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdir, rename, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import fc from 'fast-check';
import { readLabels, readLibrary, readSensor } from '../../src/hyperspectral/index.js';
import { libraryCsv, resampleLibrary } from '../../src/hyperspectral/library.js';
import { tempFolder } from '../support/temp.js';

async function writeEnviLibrary(folder: string, name: string, lines: string[], values: number[]) {
  const header = ['ENVI', 'bands = 1', 'data type = 5', 'interleave = bsq', 'byte order = 0', ...lines];
  await writeFile(join(folder, `${name}.hdr`), header.join('\n'));
  await writeFile(join(folder, `${name}.sli`), new Uint8Array(Float64Array.from(values).buffer));
  return join(folder, `${name}.sli`);
}

test('libraries of ENVI and CSV are read, in nanometres and reflectance', async (t) => {
  const folder = await tempFolder(t);
  const lines = [
    'file type = ENVI Spectral Library',
    'samples = 3',
    'lines = 2',
    'wavelength units = Micrometers',
  ];
  const more = ['wavelength = {0.5, 0.6, 0.7}', 'spectra names = {grass, red clay}'];
  const path = await writeEnviLibrary(
    folder,
    'lib',
    [...lines, ...more],
    [1000, 2000, 3000, 4000, 5000, 6000],
  );
  for (const name of [path, path.replace('.sli', '.hdr')]) {
    const { wavelengths, spectra, warning } = await readLibrary(name);
    assert.deepEqual(wavelengths, [500, 600, 700]);
    assert.deepEqual(
      spectra.map((one) => one.name),
      ['grass', 'red clay'],
    );
    assert.deepEqual(
      spectra[1]!.values.map((value) => Number(value.toFixed(9))),
      [0.4, 0.5, 0.6],
    );
    assert.match(warning!, /ten thousandths/);
  }
  const csv = join(folder, 'lib.csv');
  await writeFile(csv, 'wavelength (um),"oak, green",x\n0.5,0.1,0.2\r\n0.6,0.3,0.4\n');
  assert.deepEqual(await readLibrary(csv), {
    wavelengths: [500, 600],
    spectra: [
      { name: 'oak, green', values: [0.1, 0.3] },
      { name: 'x', values: [0.2, 0.4] },
    ],
    isScaled: false,
  });
});

test('names of spectra may contain braces, and are not used if their number differs', async (t) => {
  const folder = await tempFolder(t);
  const lines = ['file type = ENVI Spectral Library', 'samples = 2', 'lines = 2', 'wavelength = {500, 600}'];
  for (const [text, names, warning] of [
    ['{\n a{1},\n b {2} \n}', ['a{1}', 'b {2}'], /^undefined$/],
    [
      '{clay, red, moss}',
      ['spectrum 1', 'spectrum 2'],
      /"spectra names" is not used: it lists 3 names for 2/,
    ],
  ] as const) {
    const named = [...lines, 'wavelength units = nm', `spectra names = ${text}`];
    const path = await writeEnviLibrary(folder, 'names', named, [0.1, 0.2, 0.3, 0.4]);
    const library = await readLibrary(path);
    assert.deepEqual(
      library.spectra.map(({ name }) => name),
      names,
    );
    assert.match(String(library.warning), warning);
  }
});

test('files that are not libraries are refused with a reason', async (t) => {
  const folder = await tempFolder(t);
  const csv = join(folder, 'bad.csv');
  await writeFile(csv, 'nm,a\n500,1\n600,x\n');
  await assert.rejects(readLibrary(csv), /line 3 does not contain 2 numbers/);
  await assert.rejects(readLibrary(join(folder, 'none.csv')), { code: 'TW_ANALYSIS_LIBRARY' });
  const image = await writeEnviLibrary(folder, 'image', ['samples = 3', 'lines = 1'], [1, 2, 3]);
  await assert.rejects(readLibrary(image), /not "ENVI Spectral Library"/);
  const lines = ['file type = ENVI Spectral Library', 'samples = 3', 'lines = 1'];
  await assert.rejects(
    readLibrary(await writeEnviLibrary(folder, 'bare', lines, [1, 2, 3])),
    /no wavelengths/,
  );
  // The last occurrence of a field counts.
  for (const [line, message] of [
    ['byte order = 7', /byte order is 7/],
    ['reflectance scale factor = 0', /reflectance scale factor is "0"/],
    ['reflectance scale factor = NaN', /reflectance scale factor is "NaN"/],
  ] as const)
    await assert.rejects(
      readLibrary(
        await writeEnviLibrary(folder, 'odd', [...lines, 'wavelength = {500, 600, 700}', line], [1, 2, 3]),
      ),
      { code: 'TW_RASTER_CORRUPT', message },
    );
});

test('a fine library is averaged over each band, a coarse one interpolated; gaps and ends are skipped', () => {
  const fine = Array.from({ length: 501 }, (_, i) => 400 + i);
  const slope = (wavelength: number) => 0.1 + wavelength / 1000;
  const library = { wavelengths: fine, spectra: [{ name: 'slope', values: fine.map(slope) }] };
  const bands = [390, 450, 600.5, 880].map((wavelength) => ({ name: '', wavelength, fwhm: 10 }));
  const found = resampleLibrary(library, bands);
  assert.deepEqual(found.bands, [1, 2, 3]);
  for (const [i, band] of found.bands.entries())
    assert.ok(Math.abs(found.values[i]! - slope(bands[band]!.wavelength)) < 1e-9);
  // A narrow line is spread over the band.
  const line = {
    wavelengths: fine,
    spectra: [{ name: 'line', values: fine.map((nm) => Number(nm === 600)) }],
  };
  const [peak] = resampleLibrary(line, [{ name: '', wavelength: 600, fwhm: 10 }]).values;
  const deviation = 10 / (2 * Math.sqrt(2 * Math.log(2)));
  assert.ok(Math.abs(peak! - 1 / (deviation * Math.sqrt(2 * Math.PI))) < 2e-3, `${peak}`);
  // Unsorted, 10 nm apart, with a gap of 100 nm.
  const coarse = [700, 500, 510, 520, 530, 630, 640, 650].sort((a, b) => b - a);
  const sparse = { wavelengths: coarse, spectra: [{ name: 'slope', values: coarse.map(slope) }] };
  const at = resampleLibrary(
    sparse,
    [500, 505, 580, 630, 645, 680, 700, 701].map((wavelength) => ({ name: '', wavelength })),
  );
  assert.deepEqual(at.bands, [0, 1, 3, 4, 6]);
  for (const [i, nm] of [500, 505, 630, 645, 700].entries())
    assert.ok(Math.abs(at.values[i]! - slope(nm)) < 1e-12);
});

test('values of bands are integrals of their response, however unevenly a library is sampled', () => {
  const ramp = (nm: number) => (nm - 300) / 1000;
  const redEdge = (nm: number) => 0.05 + 0.4 / (1 + Math.exp(-(nm - 800) / 12));
  const from = (end: number, step: number, start = 700) =>
    Array.from({ length: Math.ceil((end - start) / step) }, (_, i) => start + i * step);
  const random = fc.sample(fc.double({ min: 0.5, max: 4, noNaN: true }), { seed: 42, numRuns: 120 });
  const samplings = {
    'spectrometers joined at 800 nm': [...from(800, 1), ...from(960, 4, 800)],
    'joined at 804 nm, the coarse one first': [...from(804, 4), ...from(960, 1, 804)],
    'overlapping spectrometers': [...from(820, 3), ...from(960, 4, 780)],
    'even wavenumbers': from(14_300, 40, 10_400).map((wavenumber) => 1e7 / wavenumber),
    random: random.map((_, i) => 700 + random.slice(0, i).reduce((sum, step) => sum + step, 0)),
  };
  for (const [name, wavelengths] of Object.entries(samplings))
    for (const spectrum of [ramp, redEdge])
      for (const centre of [760, 796, 802, 804, 810, 850]) {
        const fwhm = 20;
        const library = { wavelengths, spectra: [{ name, values: wavelengths.map(spectrum) }] };
        const { values } = resampleLibrary(library, [{ name: '', wavelength: centre, fwhm }]);
        let integral = 0;
        let total = 0;
        for (let nm = centre - 60; nm <= centre + 60; nm += 0.05) {
          const response = 2 ** -(((2 * (nm - centre)) / fwhm) ** 2);
          integral += response * spectrum(nm);
          total += response;
        }
        const error = values[0] - integral / total;
        assert.ok(Math.abs(error) < 2e-3, `${name}, ${centre} nm: off by ${error}`);
      }
  // A band that reaches over an end or into a gap is interpolated, because half of a response would shift it.
  const gapped = {
    wavelengths: [...from(800, 1), ...from(960, 1, 850)],
    spectra: [] as { name: string; values: number[] }[],
  };
  gapped.spectra.push({ name: 'ramp', values: gapped.wavelengths.map(ramp) });
  for (const centre of [702, 797, 853, 957]) {
    const { values } = resampleLibrary(gapped, [{ name: '', wavelength: centre, fwhm: 20 }]);
    assert.ok(Math.abs(values[0] - ramp(centre)) < 1e-9, `${centre} nm: ${values[0]}`);
  }
});

test('a library with a non-numeric cell or deleted channels is refused', async (t) => {
  const path = join(await tempFolder(t), 'library.csv');
  await writeFile(path, 'nm,grass\n500,0.1\n600,\n');
  await assert.rejects(readLibrary(path), /line 3 does not contain 2 numbers/);
  await writeFile(path, 'nm,grass\n500,0.1\n600,-1.23e34\n');
  await assert.rejects(readLibrary(path), /-1.23e\+34, which is not a reflectance/);
});

const noPipes = spawnSync('mkfifo', ['--version']).error ? 'mkfifo is not there' : false;

test('pipes, devices, folders and files of the wrong size are refused without being read', {
  skip: noPipes,
  timeout: 60_000,
}, async (t) => {
  const folder = await tempFolder(t);
  const readers = [
    ['TW_ANALYSIS_LIBRARY', readLibrary, 'lib.csv'],
    ['TW_ANALYSIS_LABELS', readLabels, 'labels.geojson'],
    ['TW_ANALYSIS_SENSOR_FILE', readSensor, 'sensor.csv'],
  ] as const;
  for (const [code, read, name] of readers) {
    const path = join(folder, name);
    spawnSync('mkfifo', [path]);
    await assert.rejects(read(path), { code, message: /pipe or a device/ });
    await rename(path, `${path}.pipe`);
    await assert.rejects(read(path), { code, message: /does not exist/ });
    await writeFile(path, '');
    await truncate(path, 1e12);
    await assert.rejects(read(path), { code, message: /has 1000000000000 bytes, and at most \d+ are read/ });
    await truncate(path, 0);
  }
  const dotted = join(folder, 'folder.csv');
  await mkdir(dotted);
  await assert.rejects(readLibrary(dotted), { code: 'TW_ANALYSIS_LIBRARY', message: /it is a folder/ });
  // ENVI libraries are refused like rasters.
  await assert.rejects(readLibrary(folder), { code: 'TW_RASTER_NOT_TIFF', message: /it is a folder/ });
  const pipe = { code: 'TW_RASTER_UNREADABLE', message: /pipe or a device/ };
  await assert.rejects(readLibrary('/dev/zero'), pipe);
  const lines = ['file type = ENVI Spectral Library', 'samples = 2', 'lines = 1', 'wavelength = {500, 600}'];
  const image = await writeEnviLibrary(folder, 'lib', lines, [1, 2]);
  for (const path of [image, image.replace('.sli', '.hdr')]) {
    await rename(path, `${path}.kept`);
    spawnSync('mkfifo', [path]);
    await assert.rejects(readLibrary(path), pipe);
    await rename(path, `${path}.pipe`);
    await assert.rejects(readLibrary(path), { code: 'TW_RASTER_UNREADABLE', message: /does not exist/ });
    await rename(`${path}.kept`, path);
  }
  const away = join(folder, 'away', 'lib.sli');
  await assert.rejects(readLibrary(away), { code: 'TW_RASTER_UNREADABLE', message: /does not exist/ });
});

test('a library with more wavelengths than a function call accepts arguments is read', async (t) => {
  const path = join(await tempFolder(t), 'long.csv');
  const rows = Array.from({ length: 300_000 }, (_, i) => `${400 + i / 200},0.5`);
  await writeFile(path, `nm,grass\n${rows.join('\n')}\n`);
  assert.equal((await readLibrary(path)).wavelengths.length, 300_000);
});

test('a written library is read back with its names, whatever characters they have', async (t) => {
  const path = join(await tempFolder(t), 'endmembers.csv');
  const bands = [500, 600].map((wavelength) => ({ name: '', wavelength }));
  const special = fc.constantFrom(
    ...['"', ',', '\n', '\r', '\t', ' ', "'", '=', '+', '-', '@', '\u2028', '\ufeff'],
  );
  const name = fc
    .array(fc.oneof(special, fc.string({ unit: 'grapheme', minLength: 1, maxLength: 3 })), { minLength: 1 })
    .map((parts) => parts.join(''));
  await fc.assert(
    fc.asyncProperty(fc.array(name, { minLength: 1, maxLength: 4 }), async (names) => {
      const spectra = names.map((one, i) => ({ name: one, spectrum: [0.1 * i, 0.5] }));
      const text = libraryCsv(spectra, bands);
      await writeFile(path, text);
      const read = await readLibrary(path);
      assert.deepEqual(
        read.spectra.map((one) => one.name),
        names.map((one) => one.replace(/[\p{Cc}\u2028\u2029]/gu, ' ')),
      );
      assert.deepEqual(read.spectra[0]!.values, [0, 0.5]);
      assert.equal(text.toString().split(/[\r\n]/).length, 4);
      for (const one of spectra)
        assert.doesNotMatch(libraryCsv([one], bands).toString(), /^wavelength \(nm\),"?\s*[=+@-]/);
    }),
    { seed: 11, numRuns: 300 },
  );
});
