/** A cube of two overlapping detectors in an ENVI file, with gaps of water vapour and a bad band. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { writeEnvi } from '../raster/envi.js';
import { random } from '../raster/images.js';
import { HOLE } from './cubes.js';

const { detectors, clean }: { detectors: number[]; clean: number[] } = JSON.parse(
  readFileSync(new URL('../../../test/fixtures/hyperspectral/spectra.json', import.meta.url), 'utf8'),
);

/** Centres of the bands, nm, in the order of the file; the first 90 belong to the first detector. */
export const DETECTORS = detectors;
export const FIRST = 90;
export const FWHM = 8.5;
export const BAD = 40;
export const SIDE = 80;

/**
 * Writes the cube: SIDE x SIDE pixels of 30 m over several rows of blocks of geohash cells of precision 5, with a corner without data.
 * Returns the path of its header. From column `changedFrom` on, pixels depend on `change`.
 */
export function writeDetectorCube(folder: string, name: string, change = 0, changedFrom = SIDE): string {
  const next = random(19);
  const noise = detectors.map(() => Float64Array.from({ length: SIDE * SIDE }, () => next() - 0.5));
  const bands = detectors.map((_, band) =>
    Array.from({ length: SIDE * SIDE }, (_, i) => {
      const [x, y] = [i % SIDE, Math.floor(i / SIDE)];
      if (x < 9 && y < 20) return HOLE;
      const light = 0.6 + (0.5 * y) / SIDE + (x >= changedFrom ? change : 0);
      return Math.round(10_000 * (clean[band]! * light + 0.01 * noise[band]![i]!));
    }),
  );
  writeEnvi(join(folder, `${name}.bsq`), {
    ...{ width: SIDE, height: SIDE, bands, type: 'int16', interleave: 'bsq' },
    lines: [
      'map info = {UTM, 1, 1, 500000, 5300000, 30, 30, 33, North, WGS-84}',
      `data ignore value = ${HOLE}`,
      'acquisition time = 2024-06-01T10:00:00Z',
      'wavelength units = Nanometers',
      `wavelength = {${detectors.join()}}`,
      `fwhm = {${detectors.map(() => FWHM).join()}}`,
      `bbl = {${detectors.map((_, band) => Number(band !== BAD)).join()}}`,
      'reflectance scale factor = 10000',
    ],
  });
  return join(folder, `${name}.hdr`);
}
