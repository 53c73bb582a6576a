/** Writes every sample below a folder, or only the cubes of `spectrometer-like`, which flags describe. */
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import {
  type CubeOptions,
  PAIR_DATES,
  writeBrokenFiles,
  writeLandsatLikeScene,
  writeSafe,
  writeSentinelLikeSeries,
  writeSpectrometerLikeSeries,
} from './index.js';

const USAGE = `usage: node dist/data-samples/main.js FOLDER
       node dist/data-samples/main.js FOLDER spectrometer-like [--seed N] [--size WIDTHxHEIGHT] [--dates N] [--bands N] [--snr DB]
`;
const CUBES = 'spectrometer-like';

async function writeAll(folder: string): Promise<string[]> {
  const series = await writeSentinelLikeSeries(join(folder, 'sentinel-like'));
  const pairs = await writeSentinelLikeSeries(join(folder, 'cloud-pairs'), { dates: PAIR_DATES });
  const landsat = await writeLandsatLikeScene(join(folder, 'landsat-like'));
  const level2 = await writeSafe(join(folder, 'sentinel-safe'), { level: 'L2A' });
  const level1 = await writeSafe(join(folder, 'sentinel-safe'), { level: 'L1C' });
  const cubes = await writeCubes(folder, {});
  const broken = await writeBrokenFiles(join(folder, 'broken'));
  return [
    ...[...series, ...pairs].map((file) => file.path),
    landsat.mtlPath,
    ...Object.values(landsat.bandPaths),
    level2.path,
    level1.path,
    ...cubes,
    ...broken,
  ];
}

async function writeCubes(folder: string, options: CubeOptions): Promise<string[]> {
  const { cubes, endmembers, abundances, classes, labels } = await writeSpectrometerLikeSeries(
    join(folder, CUBES),
    options,
  );
  return [...cubes.map(({ path }) => path), endmembers, abundances, classes, labels];
}

/** The folder, and the options of the cubes if only cubes are wanted; undefined for invalid arguments. */
function readArguments(): { folder: string; cubes?: CubeOptions } | undefined {
  const names = ['seed', 'size', 'dates', 'bands', 'snr'] as const;
  const options = Object.fromEntries(names.map((name) => [name, { type: 'string' as const }]));
  try {
    const { positionals, values } = parseArgs({ options, allowPositionals: true });
    const [folder, kind, ...rest] = positionals;
    if (folder === undefined || rest.length > 0) return undefined;
    if (kind === undefined) return Object.keys(values).length === 0 ? { folder } : undefined;
    return kind === CUBES ? { folder, cubes: cubeOptions(values as Record<string, string>) } : undefined;
  } catch {
    return undefined;
  }
}

/** Throws an Error, with the name of the option, if a value is not a number within its range. */
function cubeOptions(values: Record<string, string>): CubeOptions {
  const options: CubeOptions = {};
  const number = (name: 'seed' | 'dates' | 'bands' | 'snr', least: number, most: number) => {
    if (values[name] === undefined) return;
    const value = Number(values[name]);
    const isWhole = name === 'snr' || Number.isInteger(value);
    if (!isWhole || !(value >= least && value <= most)) throw new Error(name);
    options[name] = value;
  };
  number('seed', 0, 2 ** 31 - 1);
  number('dates', 1, 100);
  number('bands', 16, 1000);
  number('snr', 0, 100);
  if (values.size !== undefined) {
    const [, width, height] = /^(\d+)x(\d+)$/.exec(values.size) ?? [];
    options.size = { width: Number(width), height: Number(height) };
    if (!(options.size.width >= 1 && options.size.height >= 1)) throw new Error('size');
  }
  return options;
}

const asked = readArguments();
if (asked) {
  const paths = asked.cubes ? await writeCubes(asked.folder, asked.cubes) : await writeAll(asked.folder);
  process.stdout.write(`${paths.join('\n')}\n`);
} else {
  process.stderr.write(USAGE);
  process.exitCode = 2;
}
