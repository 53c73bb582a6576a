/** Commands of analyses that transform spectra or compute indices. */
import { InvalidArgumentError } from 'commander';
import type {
  ContinuumResults,
  IndicesResults,
  ResampleResults,
  SmoothInputs,
  SmoothResults,
} from '../../../hyperspectral/index.js';
import { plural } from '../../../utils/plural.js';
import {
  createOption,
  parseIntegerOption,
  parsePositiveIntegerOption,
  splitBands,
} from '../../options/index.js';
import { logToStderr, print, printJson, printTable } from '../../output/index.js';
import { type AnalyseFlags, analysisCommand, printMaps } from './analysis-command.js';

type IndicesFlags = AnalyseFlags & { indices?: string; list?: true };

type SmoothFlags = AnalyseFlags & Pick<SmoothInputs, 'order' | 'derivative'> & { windowBands?: number };

type ResampleFlags = AnalyseFlags & { sensor: string };

export const indicesCommand = () =>
  analysisCommand<IndicesResults, IndicesFlags>({
    name: 'indices',
    description: 'maps of narrow-band indices',
    options: [
      createOption(
        '--indices <list>',
        'names such as ndvi705,pri,cai, or expressions such as "(860nm-660nm)/(860nm+660nm)", separated by commas',
      ),
      createOption('--list', 'only print the named indices with formula and source'),
    ],
    inputsOf: async ({ indices }) => ({ indices: indices === undefined ? undefined : splitBands(indices) }),
    print: printIndices,
    instead: ({ list, format }) => (list ? listIndices(format) : undefined),
  });

export const smoothCommand = () =>
  analysisCommand<SmoothResults, SmoothFlags>({
    name: 'smooth',
    description: 'smoothed spectra, or their derivatives (Savitzky-Golay)',
    options: [
      createOption(
        '--window-bands <n>',
        'width of the window in bands, an odd number; default 7',
        parsePositiveIntegerOption,
      ),
      createOption('--order <n>', 'order of the polynomial; default 2', parseIntegerOption),
      createOption(
        '--derivative <n>',
        'order of the derivative with respect to the wavelength in nm: 0, 1 or 2; default 0',
        parseIntegerOption,
      ),
    ],
    inputsOf: async ({ windowBands: window, order, derivative }) => ({ window, order, derivative }),
    print: printSmooth,
  });

export const resampleCommand = () =>
  analysisCommand<ResampleResults, ResampleFlags>({
    name: 'resample',
    description: 'spectra at the bands of another sensor',
    options: [
      createOption(
        '--sensor <name or file>',
        'sentinel-2a, landsat-8, or a CSV file with the centre and the FWHM of each band in nm',
      ).makeOptionMandatory(),
    ],
    inputsOf: resampleInputs,
    print: printResample,
  });

export const continuumCommand = () =>
  analysisCommand({
    name: 'continuum',
    description: 'spectra divided by their upper convex hull, or maps of the depth of absorptions',
    options: [
      createOption(
        '--range <from,to>',
        'first and last wavelength of the bands, such as 2100nm,2300nm; default: all bands',
        wavelengthRange,
      ),
      createOption(
        '--depth',
        'make maps of the largest depth and of the wavelength of this depth, instead of spectra',
      ),
    ],
    print: printContinuum,
  });

/** Parses two wavelengths such as 2100nm,2300nm or 2.1um,2.3um. Returns nm. */
function wavelengthRange(text: string): [number, number] {
  const numbers = text.split(',').map((part) => {
    const [, value, unit] = /^(\d+(?:\.\d+)?)([nu])m$/.exec(part.trim()) ?? [];
    return Number(value) * (unit === 'u' ? 1000 : 1);
  });
  const [from, to] = numbers;
  if (numbers.length !== 2 || !(from! < to!))
    throw new InvalidArgumentError(
      'It must be two wavelengths such as 2100nm,2300nm, the shorter one first.',
    );
  return [from!, to!];
}

async function resampleInputs({ sensor }: ResampleFlags): Promise<object> {
  const { readSensor, SENSOR_NAMES } = await import('../../../hyperspectral/index.js');
  if ((SENSOR_NAMES as string[]).includes(sensor)) return { sensor };
  const { bands, warning } = await readSensor(sensor);
  if (warning !== undefined) logToStderr(`${sensor}: ${warning}`);
  return { sensorBands: bands };
}

async function listIndices(format: AnalyseFlags['format']): Promise<void> {
  const { NARROW_BAND_INDICES } = await import('../../../hyperspectral/index.js');
  if (format === 'json') return printJson(NARROW_BAND_INDICES);
  const rows = Object.entries(NARROW_BAND_INDICES).map(([name, { expression, title, source }]) => [
    name,
    expression,
    `${title} (${source})`,
  ]);
  printTable([['index', 'formula', 'description'], ...rows]);
}

function printIndices(results: IndicesResults): void {
  const rows = results.indices.map(({ name, bands }) => [
    name,
    bands.map(({ asked, name, wavelength }) => `${asked}: ${name} (${wavelength.toFixed(1)} nm)`).join(', '),
  ]);
  printTable([['index', 'bands'], ...rows]);
  printMaps(results);
}

function printSmooth(results: SmoothResults): void {
  const { window, order, derivative, runs, leftOut, bands } = results;
  const what = derivative === 0 ? 'smoothed' : `derivative ${derivative} per nm`;
  const left = leftOut > 0 ? `, ${leftOut} excluded in shorter runs` : '';
  print(`${what}: window ${window}, order ${order}`);
  print(`${plural(bands.length, 'band')} in ${plural(runs.length, 'run')}${left}`);
  printMaps(results);
}

function printResample(results: ResampleResults): void {
  const rows = results.sensorBands.map(({ name, wavelength, fwhm }) => [name, `${wavelength}`, `${fwhm}`]);
  printTable([['band', 'nm', 'FWHM'], ...rows]);
  if (results.uncovered.length > 0) print(`not covered: ${results.uncovered.join(', ')}`);
  printMaps(results);
}

function printContinuum(results: ContinuumResults): void {
  const { bands, outside, depth } = results;
  const left = outside > 0 ? `, ${outside} beyond the range` : '';
  print(`${depth ? 'depth' : 'continuum removed'}: ${plural(bands.length, 'band')}${left}`);
  printMaps(results);
}
