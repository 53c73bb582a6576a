/** Smoothing, continuum removal and responses, compared with SciPy and Spectral Python. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { compileExpression, parseExpression, parseWavelengthName } from '../../src/expressions/index.js';
import { INDEX_NAMES, NARROW_BAND_INDICES } from '../../src/hyperspectral/analyses/indices.js';
import { savitzkyGolay } from '../../src/hyperspectral/analyses/smoothing.js';
import { multiplyVector } from '../../src/hyperspectral/linear-algebra.js';
import { continuumRemoval, deepestBand } from '../../src/hyperspectral/methods/continuum.js';
import { type PixelMethod, pixelFunction } from '../../src/hyperspectral/methods/methods.js';
import { responseWeights } from '../../src/hyperspectral/sensors.js';
import { gaplessRuns } from '../../src/hyperspectral/wavelengths.js';
import { random } from '../raster/images.js';

interface Reference {
  even: number[];
  spectra: number[][];
  smoothed: { window: number; order: number; derivative: number; values: number[][] }[];
  uneven: { wavelengths: number[]; spectrum: number[]; window: number; order: number; values: number[][] };
  detectors: number[];
  noisy: number[];
  removed: number[];
  clean: number[];
  sensor: [centre: number, fwhm: number, value: number][];
}

const reference: Reference = JSON.parse(
  readFileSync(new URL('../../../test/fixtures/hyperspectral/spectra.json', import.meta.url), 'utf8'),
);

function near(values: ArrayLike<number>, wanted: ArrayLike<number>, tolerance: number, what: string): void {
  assert.equal(values.length, wanted.length, what);
  const most = Math.max(...Array.from(wanted, Math.abs));
  for (let i = 0; i < wanted.length; i++)
    assert.ok(
      Math.abs(values[i]! - wanted[i]!) <= tolerance * most,
      `${what} ${i}: ${values[i]} ${wanted[i]}`,
    );
}

/** Applies a method to spectra with four decimals, which int16 represents exactly. Returns one array for each spectrum. */
function valuesOf(method: PixelMethod, spectra: number[][]): number[][] {
  const [first] = spectra as [number[]];
  const bands = first.map((_, band) => Int16Array.from(spectra, (one) => Math.round(one[band]! * 10_000)));
  const coding = { scales: first.map(() => 1e-4), offsets: first.map(() => 0) };
  const { rows, evaluate } = pixelFunction(method, coding);
  const found = evaluate(
    bands,
    Int32Array.from(spectra, (_, i) => i),
    0,
  );
  return spectra.map((_, i) => Array.from({ length: rows }, (_, row) => found[row * 64 + i]!));
}

test('smoothing and derivatives of evenly spaced bands equal those of SciPy, up to the ends', () => {
  const { even, spectra, smoothed } = reference;
  assert.ok(smoothed.length > 4);
  for (const { values, ...window } of smoothed) {
    const weights = savitzkyGolay(even, window);
    const what = JSON.stringify(window);
    for (const [i, spectrum] of spectra.entries())
      near(multiplyVector(weights, spectrum), values[i]!, 1e-9, `f64 ${what}`);
    const centre = new Float64Array(even.length);
    const made = valuesOf({ kind: 'linear', weights, centre }, spectra);
    for (const [i, one] of made.entries()) near(one, values[i]!, 1e-5, `f32 ${what}`);
  }
});

test('at uneven wavelengths the polynomials equal those of NumPy, per nm', () => {
  const { wavelengths, spectrum, values, ...window } = reference.uneven;
  for (const derivative of [0, 1, 2]) {
    const weights = savitzkyGolay(wavelengths, { ...window, derivative });
    near(multiplyVector(weights, spectrum), values[derivative]!, 1e-8, `derivative ${derivative}`);
  }
  // A straight line has its slope everywhere.
  const line = wavelengths.map((wavelength) => 0.1 + 0.002 * wavelength);
  const slopes = multiplyVector(savitzkyGolay(wavelengths, { ...window, derivative: 1 }), line);
  near(
    slopes,
    line.map(() => 0.002),
    1e-9,
    'slope',
  );
});

test('runs end at gaps and where the next detector begins, whichever direction a detector runs', () => {
  const sizes = (wavelengths: number[]) => gaplessRuns(wavelengths).map((run) => run.length);
  const second = reference.detectors.slice(90);
  const breaks = second.filter((value, i) => i > 0 && value - second[i - 1]! > 100).length;
  const found = gaplessRuns(reference.detectors);
  assert.equal(found[0]!.length, 90);
  assert.equal(found.length, 2 + breaks);
  for (const run of found)
    for (const [i, band] of run.entries())
      if (i > 0) assert.ok(reference.detectors[band]! > reference.detectors[run[i - 1]!]!);
  assert.deepEqual(sizes([400, 410, 420, 430, 415, 425, 435]), [4, 3]);
  assert.deepEqual(gaplessRuns([430, 420, 410, 400]), [[3, 2, 1, 0]]);
  assert.deepEqual(sizes([400, 410, 410, 420]), [2, 2]);
  assert.deepEqual(sizes([400, 410, 420, 480, 490, 500]), [3, 3]);
});

test('the continuum equals that of Spectral Python, even over overlapping detectors', () => {
  const { detectors, noisy, removed } = reference;
  const wavelengths = Float64Array.from(detectors);
  const spectrum = Float64Array.from(noisy);
  continuumRemoval(wavelengths)(spectrum);
  near(spectrum, removed, 1e-12, 'f64');
  const [made] = valuesOf({ kind: 'continuum', wavelengths, depth: false }, [noisy]);
  near(made!, removed, 1e-12, 'from int16');
  const least = Math.min(...removed);
  const [depth] = valuesOf({ kind: 'continuum', wavelengths, depth: true }, [noisy]);
  assert.ok(Math.abs(depth![0]! - (1 - least)) < 1e-12);
  assert.equal(depth![1], detectors[removed.indexOf(least)]);
});

test('hulls are right for straight, convex and dark spectra, and for bands with one wavelength', () => {
  const remove = (wavelengths: number[], values: number[]) => {
    const spectrum = Float64Array.from(values);
    continuumRemoval(wavelengths)(spectrum);
    return Array.from(spectrum);
  };
  assert.deepEqual(remove([1, 2, 3, 4], [0.5, 0.5, 0.5, 0.5]), [1, 1, 1, 1]);
  assert.deepEqual(remove([3, 1, 2], [0.25, 0.5, 0.1875]), [1, 1, 0.5]);
  assert.deepEqual(remove([1, 2, 2, 3], [0.5, 0.25, 0.5, 0.5]), [1, 0.5, 1, 1]);
  assert.deepEqual(remove([1, 2, 3], [-0.1, -0.2, -0.1]), [NaN, NaN, NaN]);
  assert.deepEqual(deepestBand([1, 1], [1, 2]), { depth: 0, wavelength: NaN });
  assert.deepEqual(deepestBand([0.5, 0.5, NaN], [2, 1, 0]), { depth: 0.5, wavelength: 1 });
  assert.deepEqual(deepestBand([NaN], [1]), { depth: NaN, wavelength: NaN });
});

test('bands of a sensor are integrals of its response over the spectrum', () => {
  const { detectors, clean, sensor } = reference;
  for (const [wavelength, fwhm, wanted] of sensor) {
    const weights = responseWeights({ name: '', wavelength, fwhm }, detectors)!;
    const sum = weights.reduce((total, weight) => total + weight, 0);
    assert.ok(Math.abs(sum - 1) < 1e-12);
    const [value] = multiplyVector(weights, clean);
    assert.ok(Math.abs(value! - wanted) < 1e-3, `${wavelength}: ${value} ${wanted}`);
  }
  // Bands of water vapour, and bands beyond both ends.
  for (const wavelength of [1373.5, 380, 2600])
    assert.equal(responseWeights({ name: '', wavelength, fwhm: 31 }, detectors), undefined);
});

test('narrow bands of a sensor are interpolated, and an additional detector does not shift a mean', () => {
  const coarse = [500, 550, 600, 650];
  assert.deepEqual(
    Array.from(responseWeights({ name: '', wavelength: 560, fwhm: 10 }, coarse)!),
    [0, 0.8, 0.2, 0],
  );
  assert.deepEqual(
    Array.from(responseWeights({ name: '', wavelength: 600, fwhm: 10 }, coarse)!),
    [0, 0, 1, 0],
  );
  const one = Array.from({ length: 60 }, (_, i) => 600 + 5 * i);
  const two = [...one, ...one.filter((wavelength) => wavelength > 750).map((value) => value + 1)];
  const slope = (wavelengths: number[]) =>
    multiplyVector(responseWeights({ name: '', wavelength: 740, fwhm: 60 }, wavelengths)!, wavelengths)[0]!;
  assert.ok(Math.abs(slope(one) - 740) < 1e-6);
  assert.ok(Math.abs(slope(two) - 740) < 0.1, `${slope(two)}`);
});

/** The value of an index at reflectances by wavelength. */
function indexOf(text: string, at: (wavelength: number) => number): number {
  const inputs: number[] = [];
  const program = compileExpression(
    parseExpression(text),
    (name) => inputs.push(at(parseWavelengthName(name)!)) - 1,
  );
  const method: PixelMethod = { kind: 'expressions', programs: [program] };
  const bands = inputs.map((value) => Float64Array.of(value));
  const { evaluate } = pixelFunction(method, {
    scales: inputs.map(() => 1),
    offsets: inputs.map(() => 0),
  });
  return evaluate(bands, Int32Array.of(0), 0)[0]!;
}

test('indices of the library follow their formulas', () => {
  const r = (wavelength: number) => 0.1 + 0.3 * ((wavelength * 0.7919) % 1);
  const log = (wavelength: number) => -Math.log10(r(wavelength));
  const wanted: Record<keyof typeof NARROW_BAND_INDICES, number> = {
    ndvi: (r(800) - r(670)) / (r(800) + r(670)),
    ndvi705: (r(750) - r(705)) / (r(750) + r(705)),
    pri: (r(531) - r(570)) / (r(531) + r(570)),
    mcari: (r(700) - r(670) - 0.2 * (r(700) - r(550))) * (r(700) / r(670)),
    tcari_osavi:
      (3 * (r(700) - r(670) - (0.2 * (r(700) - r(550)) * r(700)) / r(670))) /
      (((1 + 0.16) * (r(800) - r(670))) / (r(800) + r(670) + 0.16)),
    cri1: 1 / r(510) - 1 / r(550),
    cri2: 1 / r(510) - 1 / r(700),
    ari1: 1 / r(550) - 1 / r(700),
    ari2: r(800) * (1 / r(550) - 1 / r(700)),
    rep: 700 + (740 - 700) * (((r(670) + r(780)) / 2 - r(700)) / (r(740) - r(700))),
    psri: (r(680) - r(500)) / r(750),
    sipi: (r(800) - r(445)) / (r(800) - r(680)),
    wbi: r(900) / r(970),
    ndwi: (r(860) - r(1240)) / (r(860) + r(1240)),
    msi: r(1599) / r(819),
    ndii: (r(819) - r(1649)) / (r(819) + r(1649)),
    ndni: (log(1510) - log(1680)) / (log(1510) + log(1680)),
    ndli: (log(1754) - log(1680)) / (log(1754) + log(1680)),
    cai: 0.5 * (r(2000) + r(2200)) - r(2100),
    clay: r(1650) / r(2215),
    ferrous: r(1650) / r(830),
    iron_oxide: r(660) / r(485),
  };
  assert.deepEqual(Object.keys(wanted), INDEX_NAMES);
  for (const name of INDEX_NAMES) {
    const value = indexOf(NARROW_BAND_INDICES[name].expression, r);
    assert.ok(Math.abs(value - wanted[name]) < 1e-12 * Math.abs(wanted[name]) + 1e-12, name);
  }
});

test('docs/reference/hyperspectral.md has the formula and the source of each index', () => {
  const text = readFileSync(new URL('../../../docs/reference/hyperspectral.md', import.meta.url), 'utf8');
  for (const name of INDEX_NAMES) {
    const { title, expression, source } = NARROW_BAND_INDICES[name];
    assert.ok(text.includes(`| \`${name}\` | ${title} | \`${expression}\` | ${source} |`), name);
  }
});

test('the value of a pixel does not depend on its neighbours', () => {
  const next = random(5);
  const { even } = reference;
  const spectra = Array.from({ length: 100 }, () => even.map(() => Math.round(1000 + 4000 * next())));
  const bands = even.map((_, band) => Int16Array.from(spectra, (one) => one[band]!));
  const coding = { scales: even.map(() => 1e-4), offsets: even.map(() => 0) };
  const weights = savitzkyGolay(even, { window: 7, order: 2, derivative: 1 });
  const expression = parseExpression('(b1 - b2) / sqrt(b3)');
  const methods: PixelMethod[] = [
    { kind: 'linear', weights, centre: new Float64Array(even.length) },
    { kind: 'continuum', wavelengths: Float64Array.from(even), depth: false },
    { kind: 'continuum', wavelengths: Float64Array.from(even), depth: true },
    { kind: 'expressions', programs: [compileExpression(expression, (name) => Number(name.slice(1)))] },
  ];
  for (const method of methods) {
    const { rows, evaluate } = pixelFunction(method, coding);
    const valueAt = (order: Int32Array, from: number) => Array.from(evaluate(bands, order, from));
    const forwards = Int32Array.from(spectra, (_, i) => i);
    const backwards = forwards.toReversed();
    const first = valueAt(forwards, 0);
    const alone = (pixel: number) => valueAt(Int32Array.of(pixel), 0);
    const last = valueAt(backwards, 64);
    for (let r = 0; r < rows; r++)
      for (const pixel of [0, 17, 35]) {
        assert.equal(first[r * 64 + pixel], alone(pixel)[r * 64], method.kind);
        assert.equal(last[r * 64 + 35 - pixel], first[r * 64 + pixel], method.kind);
      }
  }
});
