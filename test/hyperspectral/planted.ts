/** A cube of known endmembers and abundances, and an image of the abundances in the same grid. */
import { join } from 'node:path';
import { writeEnvi } from '../raster/envi.js';
import { random } from '../raster/images.js';
import { COUNT, HOLE } from './cubes.js';

const MAP = 'map info = {UTM, 1, 1, 500000, 5300000, 30, 30, 33, North, WGS-84}';

/** `snr`: dB. Some pixels are pure. */
export function writePlantedCube(
  folder: string,
  { snr, side = 70, seed = 3 }: { snr: number; side?: number; seed?: number },
): { cube: string; truth: string; pure: number[][]; wavelengths: number[] } {
  const next = random(seed);
  const normal = () => Math.sqrt(-2 * Math.log(1 - next())) * Math.cos(2 * Math.PI * next());
  const wavelengths = Array.from({ length: COUNT }, (_, band) => 450 + 50 * band);
  const pure = [0, 1, 2, 3].map((k) =>
    wavelengths.map((_, b) => 0.3 + 0.2 * Math.sin((k + 1) * 0.35 * b + 1.3 * k)),
  );
  const shares = Array.from({ length: side * side }, (_, i) => {
    const raw = pure.map((_, k) => -Math.log(1 - next()) * (1 + Math.sin((i % side) / 9 + k)));
    const total = raw.reduce((sum, value) => sum + value, 0);
    return i % 50 === 0 ? raw.map((_, k) => Number(k === (i / 50) % 4)) : raw.map((value) => value / total);
  });
  const clean = shares.map((own) =>
    wavelengths.map((_, b) => own.reduce((sum, share, k) => sum + share * pure[k]![b]!, 0)),
  );
  const power = clean.flat().reduce((sum, value) => sum + value * value, 0) / (clean.length * COUNT);
  const noise = Math.sqrt(power / 10 ** (snr / 10));
  const bands = wavelengths.map((_, b) =>
    clean.map((spectrum) => (b === 12 ? HOLE : Math.round(10_000 * (spectrum[b]! + noise * normal())))),
  );
  const size = { width: side, height: side, type: 'int16', interleave: 'bsq' } as const;
  const scale = ['reflectance scale factor = 10000', `data ignore value = ${HOLE}`];
  writeEnvi(join(folder, 'cube.bsq'), {
    ...{ ...size, bands },
    lines: [
      ...[MAP, ...scale, 'acquisition time = 2024-06-01T10:00:00Z', 'wavelength units = Nanometers'],
      `wavelength = {${wavelengths.join()}}`,
      `bbl = {${wavelengths.map((_, band) => Number(band !== 8)).join()}}`,
    ],
  });
  // The image has as many bands as a spectrum, so it is resampled by nearest neighbour like the cube.
  const truth = wavelengths.map((_, k) => shares.map((own) => Math.round(10_000 * (own[k] ?? 0))));
  writeEnvi(join(folder, 'truth.bsq'), {
    ...size,
    bands: truth,
    lines: [MAP, `wavelength = {${wavelengths.join()}}`, `data ignore value = ${HOLE}`],
  });
  return { cube: join(folder, 'cube.hdr'), truth: join(folder, 'truth.hdr'), pure, wavelengths };
}
