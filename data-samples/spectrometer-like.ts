/** Cubes of an imaging spectrometer whose endmembers, abundances and classes are known. */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type Abundances, dominantClasses, makeAbundances } from './abundances.js';
import { ENDMEMBERS, reflectanceAt } from './endmembers.js';
import { type EnviImage, writeEnvi } from './envi.js';
import { labelPolygons } from './label-polygons.js';
import { smoothGaussian } from './random.js';
import { SERIES_EPSG, SERIES_ORIGIN } from './sentinel-like.js';

export interface CubeOptions {
  seed?: number;
  /** Pixels of 20 m. */
  size?: { width: number; height: number };
  /** Number of dates, 20 days apart. */
  dates?: number;
  /** Number of bands from 420 to 2450 nm, at least 16. */
  bands?: number;
  /** Signal-to-noise ratio of the good bands, dB: 10 log10 of the mean square of the signal over that of the noise. */
  snr?: number;
}

/** The noise-free scene behind a series of cubes. */
export interface CubeScene {
  width: number;
  height: number;
  /** Centres, nm. */
  wavelengths: number[];
  /** Full width at half maximum of all bands, nm. */
  fwhm: number;
  /** False for bands inside the water vapour absorption of the atmosphere, which contain only noise. */
  good: boolean[];
  /** Reflectance 0-1 of each endmember in each band. */
  spectra: number[][];
  abundances: Abundances;
  /** The dominant endmember of each pixel, from 1. */
  classes: Uint8Array;
  /** Standard deviation of the noise of good bands, reflectance. */
  noise: number;
}

export interface CubeFiles {
  /** Headers of the cubes, one a date. */
  cubes: { path: string; datetime: string }[];
  /** Image files; each has its header beside it. */
  endmembers: string;
  abundances: string;
  classes: string;
  /** GeoJSON. */
  labels: string;
}

export const CUBE_DEFAULTS = {
  seed: 20_230_707,
  size: { width: 240, height: 320 },
  dates: 3,
  bands: 100,
  snr: 30,
} as const satisfies CubeOptions;
export const CUBE_PIXEL = 20;
export const CUBE_NODATA = -32_768;
/** Stored number = reflectance x 10000. */
const SCALE = 10_000;
const FIRST_DATE = Date.UTC(2023, 3, 18, 10, 20);
const DATE_STEP = 20 * 86_400_000;
const SHORTEST = 420;
const LONGEST = 2450;
/** Wavelengths at which the atmosphere is opaque, nm. */
const WATER_VAPOUR = [
  [1350, 1425],
  [1810, 1950],
] as const;
/** Standard deviation of bands with only noise, reflectance. */
const BAD_NOISE = 0.05;

/** The same seed and options give the same scene on every machine. */
export function cubeScene(options: CubeOptions = {}): CubeScene {
  const { seed, size, bands, snr } = { ...CUBE_DEFAULTS, ...options };
  const spacing = (LONGEST - SHORTEST) / (bands - 1);
  const wavelengths = Array.from({ length: bands }, (_, band) => round(SHORTEST + band * spacing));
  const good = wavelengths.map((nm) => !WATER_VAPOUR.some(([from, to]) => nm >= from && nm <= to));
  const spectra = ENDMEMBERS.map((one) => wavelengths.map((nm) => reflectanceAt(one, nm)));
  const view = { x: 0, y: 0, ...size, pixelSize: CUBE_PIXEL };
  const abundances = makeAbundances(view, ENDMEMBERS.length, seed);
  const power = meanSquare(
    spectra.map((spectrum) => spectrum.filter((_, band) => good[band])),
    abundances,
  );
  return {
    ...size,
    ...{ wavelengths, fwhm: round(1.1 * spacing), good, spectra, abundances },
    classes: dominantClasses(abundances),
    // The last digit of a power may differ between machines.
    noise: Number(Math.sqrt(power / 10 ** (snr / 10)).toPrecision(9)),
  };
}

const round = (nanometres: number) => Number(nanometres.toFixed(2));

/** Mean of the squares of all bands of all pixels. */
function meanSquare(spectra: number[][], abundances: Abundances): number {
  let sum = 0;
  for (const [i, a] of abundances.entries())
    for (const [j, b] of abundances.entries()) {
      const product = spectra[i]!.reduce((total, value, band) => total + value * spectra[j]![band]!, 0);
      sum += product * a.reduce((total, value, pixel) => total + value * b[pixel]!, 0);
    }
  return sum / (spectra[0]!.length * abundances[0]!.length);
}

/**
 * Writes one ENVI cube a date (int16, bil, EPSG:32633, reflectance x 10000, wavelengths, FWHM and bad bands), and to a folder beside it,
 * which ends in `-truth`, the spectra of the endmembers (a spectral library), their abundances (float32), the class of each pixel (an ENVI
 * classification) and polygons of one class each (GeoJSON). All dates show the same ground, each with noise of its own.
 */
export async function writeSpectrometerLikeSeries(
  folder: string,
  options: CubeOptions = {},
): Promise<CubeFiles> {
  const { seed, dates } = { ...CUBE_DEFAULTS, ...options };
  const scene = cubeScene(options);
  // Ingest searches subfolders.
  const truth = `${folder}-truth`;
  for (const path of [folder, truth]) await mkdir(path, { recursive: true });
  const cubes: CubeFiles['cubes'] = [];
  for (let date = 0; date < dates; date++) {
    const datetime = new Date(FIRST_DATE + date * DATE_STEP).toISOString().replace('.000', '');
    const name = `spectrometer-like_${datetime.slice(0, 10).replaceAll('-', '')}`;
    const image = imageOf(scene, scene.wavelengths.length, 'int16', {
      ...spectralFields(scene),
      bbl: scene.good.map(Number),
      'data ignore value': CUBE_NODATA,
      'reflectance scale factor': SCALE,
      'acquisition time': datetime,
      'sensor type': 'synthetic',
    });
    await writeEnvi(join(folder, `${name}.bil`), image, cubeRows(scene, seed + 100_003 * (date + 1)));
    cubes.push({ path: join(folder, `${name}.hdr`), datetime });
  }
  return { cubes, ...(await writeTruth(truth, scene, seed)) };
}

const MAP_INFO = [
  ...['UTM', 1, 1, SERIES_ORIGIN.x, SERIES_ORIGIN.y, CUBE_PIXEL, CUBE_PIXEL],
  ...[SERIES_EPSG % 100, 'North', 'WGS-84', 'units=Meters'],
];

function imageOf(
  { width, height }: CubeScene,
  bands: number,
  type: EnviImage['type'],
  fields: EnviImage['fields'],
): EnviImage {
  const interleave = type === 'int16' ? 'bil' : 'bsq';
  return {
    ...{ samples: width, lines: height, bands, type, interleave },
    fields: { 'map info': MAP_INFO, ...fields },
  };
}

const spectralFields = ({ wavelengths, fwhm }: CubeScene) => ({
  'wavelength units': 'Nanometers',
  wavelength: wavelengths,
  fwhm: wavelengths.map(() => fwhm),
});

/** Rows of a cube, each band by band, with noise. */
function* cubeRows({ width, height, good, spectra, abundances, noise }: CubeScene, seed: number) {
  const bands = good.length;
  for (let row = 0; row < height; row++) {
    const numbers = new Int16Array(width * bands);
    for (let band = 0; band < bands; band++)
      for (let column = 0; column < width; column++) {
        const deviation = smoothGaussian(column, row, seed + 31 * band);
        let reflectance = deviation * (good[band] ? noise : BAD_NOISE);
        if (good[band])
          for (const [k, one] of abundances.entries())
            reflectance += one[row * width + column]! * spectra[k]![band]!;
        numbers[band * width + column] = Math.round(reflectance * SCALE);
      }
    yield numbers;
  }
}

async function writeTruth(folder: string, scene: CubeScene, seed: number): Promise<Omit<CubeFiles, 'cubes'>> {
  const names = ENDMEMBERS.map(({ name }) => name);
  const endmembers = join(folder, 'endmembers.sli');
  const library: EnviImage = {
    ...{ samples: scene.wavelengths.length, lines: names.length, bands: 1 },
    ...{ type: 'float32', interleave: 'bsq', fileType: 'ENVI Spectral Library' },
    fields: { ...spectralFields(scene), 'spectra names': names },
  };
  await writeEnvi(
    endmembers,
    library,
    scene.spectra.map((spectrum) => Float32Array.from(spectrum)),
  );

  const abundances = join(folder, 'abundances.img');
  const fields = { 'band names': names };
  await writeEnvi(abundances, imageOf(scene, names.length, 'float32', fields), scene.abundances);

  const classes = join(folder, 'classes.img');
  const classification = imageOf(scene, 1, 'uint8', {
    classes: names.length + 1,
    'class names': ['Unclassified', ...names],
    'class lookup': CLASS_COLOURS.flat(),
    'band names': ['dominant endmember'],
    'data ignore value': 0,
  });
  await writeEnvi(classes, { ...classification, fileType: 'ENVI Classification' }, [scene.classes]);

  const labels = join(folder, 'labels.geojson');
  const grid = { ...scene, origin: SERIES_ORIGIN, pixelSize: CUBE_PIXEL, epsg: SERIES_EPSG };
  await writeFile(labels, `${JSON.stringify(labelPolygons(grid, names, seed))}\n`);
  return { endmembers, abundances, classes, labels };
}

/** Red, green and blue of no class and of each endmember. */
const CLASS_COLOURS = [
  [0, 0, 0],
  [58, 145, 61],
  [214, 190, 110],
  [176, 122, 84],
  [190, 60, 40],
  [235, 235, 225],
  [60, 110, 200],
];
