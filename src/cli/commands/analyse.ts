/** `tilewright analyse`: a subcommand for each analysis. Invariant: help does not load `hyperspectral`. */
import { Command, InvalidArgumentError } from 'commander';
import type {
  AnomalyResults,
  ClassifyInputs,
  ClassifyResults,
  ClusterResults,
  ComponentsResults,
  ContinuumResults,
  IndicesResults,
  MatchInputs,
  MatchResults,
  ResampleResults,
  SmoothInputs,
  SmoothResults,
  StatsResults,
  UnmixInputs,
  UnmixResults,
} from '../../hyperspectral/index.js';
import { plural } from '../../utils/text.js';
import {
  createOption,
  parseIntegerOption,
  parseNumberOption,
  parsePositiveIntegerOption,
  splitBands,
} from '../options.js';
import { formatBytes, formatPercent, logToStderr, print, printJson, printTable } from '../output.js';
import {
  type AnalyseFlags,
  accuracyText,
  analysisCommand,
  intervalText,
  type LabelFlags,
  LIBRARY_FILE_HELP,
  labelOptions,
  loadingText,
  printClassAccuracy,
  printMaps,
  readLabelsInput,
  readLibraryInput,
  targetsOption,
} from './analysis.js';

type ClassifyFlags = AnalyseFlags &
  LabelFlags & {
    classifier?: ClassifyInputs['classifier'];
    split: NonNullable<ClassifyInputs['split']>;
  } & Pick<ClassifyInputs, 'epochs' | 'precision' | 'seed'>;

const classifyCommand = () =>
  analysisCommand<ClassifyResults, ClassifyFlags>({
    name: 'classify',
    description: 'maps of classes and their probabilities, from labelled pixels',
    options: [
      ...labelOptions(),
      createOption(
        '--classifier <name>',
        'linear discriminant analysis, logistic regression, a multilayer perceptron, or a convolutional network along the bands (cnn1d), or also over the ground (resnet3d); default: the simplest of the first three whose cross-entropy is within one standard error of the least',
      ).choices(['lda', 'logistic', 'mlp', 'cnn1d', 'resnet3d'] satisfies ClassifyInputs['classifier'][]),
      createOption(
        '--split <how>',
        'score squares of ground that did not train (place), or random pixels, which overestimates the accuracy',
      )
        .choices(['place', 'random'])
        .default('place'),
      createOption(
        '--epochs <n>',
        'passes of a convolutional network over the labelled pixels',
        parseIntegerOption,
      ),
      createOption(
        '--precision <how>',
        'full precision, or mixed precision, which stores spectra in float16 and halves the bytes of gradients',
      ).choices(['full', 'mixed'] satisfies ClassifyInputs['precision'][]),
      createOption(
        '--seed <n>',
        'seed of the folds of ground, and of the initial weights of networks',
        parseIntegerOption,
      ),
    ],
    inputsOf: classifyInputs,
    print: printClasses,
  });

async function classifyInputs(flags: ClassifyFlags): Promise<object> {
  const { classifier, split, epochs, precision, seed } = flags;
  return { labels: await readLabelsInput(flags), classifier, split, epochs, precision, seed };
}

function printClasses(results: ClassifyResults, flags: ClassifyFlags): void {
  const { classes, names, oa, split, oaByPlace, compared, calibration, model, training } = results;
  printClassAccuracy(
    classes,
    classes.map(({ code }) => names[code] ?? ''),
  );
  print(`${accuracyText(results)} ${split === 'place' ? 'of separate ground' : 'at random'}`);
  for (const text of results.warnings) logToStderr(`warning: ${text}`);
  if (oaByPlace !== undefined)
    print(
      `on separate ground it is ${formatPercent(oaByPlace)}: the random split overestimates it by ${(100 * (oa - oaByPlace)).toFixed(1)} points`,
    );
  const tried = compared.map((one) => [
    one.classifier === results.classifier ? `${one.classifier} (chosen)` : one.classifier,
    `${one.strength}`,
    one.entropy.toFixed(3),
    one.excess === 0 ? '' : `${one.excess.toFixed(3)} +- ${one.excessError?.toFixed(3) ?? '?'}`,
    `${formatPercent(one.oa)}${intervalText(one.oaInterval, formatPercent)}`,
    formatPercent(one.aa),
    one.kappa.toFixed(3),
  ]);
  print();
  const titles = ['classifier', 'strength', 'cross-entropy', 'above the least', 'OA', 'AA', 'kappa'];
  printTable([titles, ...tried]);
  if (flags.classifier === undefined)
    print(
      `${results.classifier} was chosen as the simplest whose cross-entropy is within one standard error of the least`,
    );
  else warnOfWorse(results);
  const { error, uncalibrated, temperature } = calibration;
  print(
    `calibration error of the probabilities ${formatPercent(error)} with the temperatures that other ground supports, ${formatPercent(uncalibrated)} without; temperature of the map ${temperature.toFixed(2)}`,
  );
  if (training) {
    const { parameters, epochs, engine, precision, spectraBytes, gradientBytes } = training;
    const how = epochs === undefined ? '' : `${plural(epochs, 'epoch')} by ${engine}, `;
    print(
      `${plural(parameters, 'weight')}, ${how}${precision} precision: ${formatBytes(spectraBytes)} of spectra, ${formatBytes(gradientBytes)} of gradients`,
    );
  }
  printMaps(results);
  print(`${model}: tilewright predict ${model} --collection OTHER`);
}

/** Warns if a simpler classifier than the requested one is better by more than one standard error. */
function warnOfWorse({ classifier, compared }: ClassifyResults): void {
  const { excess, excessError } = compared.find((one) => one.classifier === classifier)!;
  const better = compared.find((one) => one.excess === 0)!;
  if (excess > (excessError ?? Infinity))
    logToStderr(
      `warning: ${better.classifier} is better by ${excess.toFixed(3)} of cross-entropy, with a standard error of ${excessError!.toFixed(3)}`,
    );
}

const clusterCommand = () =>
  analysisCommand({
    name: 'cluster',
    description: 'maps of the clusters that spectra form (k-means), with the same codes in all tiles',
    options: [
      createOption(
        '--clusters <n>',
        'number of clusters to find, 2 to 50',
        parsePositiveIntegerOption,
      ).makeOptionMandatory(),
      createOption('--seed <n>', 'seed of the initial cluster centres; default 1', parseIntegerOption),
      createOption(
        '--iterations <n>',
        'maximum number of iterations; default 100',
        parsePositiveIntegerOption,
      ),
    ],
    print: printClusters,
  });

function printClusters(results: ClusterResults): void {
  const { clusters, pixels, explained, iterations, converged } = results;
  const rows = clusters.map(({ code, pixels: own, spread }) => [
    `${code}`,
    `${own}`,
    formatPercent(own / pixels),
    spread.toPrecision(4),
  ]);
  printTable([['code', 'pixels', 'share', 'rms distance'], ...rows]);
  const rest = converged ? '' : ' without convergence';
  print(
    `${plural(clusters.length, 'cluster')} explain ${formatPercent(explained)} of the variance of ${plural(pixels, 'pixel')}; ${plural(iterations, 'iteration')}${rest}`,
  );
  printMaps(results);
}

type MatchFlags = AnalyseFlags & {
  library: string;
  targets?: string;
  method: NonNullable<MatchInputs['method']>;
  threshold?: number;
};

const matchCommand = () =>
  analysisCommand<MatchResults, MatchFlags>({
    name: 'match',
    description: 'maps of how well each pixel matches the spectra of a library, and of the best match',
    options: [
      createOption('--library <file>', LIBRARY_FILE_HELP).makeOptionMandatory(),
      targetsOption(),
      createOption('--method <name>', 'spectral angle, information divergence, matched filter, or coherence')
        .choices(['sam', 'sid', 'mf', 'ace'] satisfies MatchInputs['method'][])
        .default('sam'),
      createOption(
        '--threshold <value>',
        'limit of the match; pixels with a worse match get no class. For sam it is an angle in radians, for the other methods a value of the map',
        parseNumberOption,
      ),
    ],
    inputsOf: async ({ library, targets, method, threshold }) => ({
      library: await readLibraryInput(library, targets),
      method,
      threshold,
    }),
    print: printMatch,
  });

function printMatch(results: MatchResults): void {
  const { method, targets, bands, uncovered, loading } = results;
  printTable([['code', 'target'], ...targets.map(({ code, name }) => [`${code}`, name])]);
  const left = uncovered > 0 ? `, ${uncovered} excluded because the library does not cover them` : '';
  print(`${method} over ${plural(bands.length, 'band')}${left}${loadingText(loading)}`);
  printMaps(results);
}

type IndicesFlags = AnalyseFlags & { indices?: string; list?: true };

type SmoothFlags = AnalyseFlags & Pick<SmoothInputs, 'order' | 'derivative'> & { windowBands?: number };

type ResampleFlags = AnalyseFlags & { sensor: string };

const indicesCommand = () =>
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

const smoothCommand = () =>
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

const resampleCommand = () =>
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

const continuumCommand = () =>
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
  const { readSensor, SENSOR_NAMES } = await import('../../hyperspectral/index.js');
  if ((SENSOR_NAMES as string[]).includes(sensor)) return { sensor };
  const { bands, warning } = await readSensor(sensor);
  if (warning !== undefined) logToStderr(`${sensor}: ${warning}`);
  return { sensorBands: bands };
}

async function listIndices(format: AnalyseFlags['format']): Promise<void> {
  const { NARROW_BAND_INDICES } = await import('../../hyperspectral/index.js');
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

type AnomalyFlags = AnalyseFlags & { windowPixels?: number[]; components?: number };

const statsCommand = () =>
  analysisCommand({
    name: 'stats',
    description: 'mean, standard deviation, covariance and correlation of the bands of a collection',
    print: printStats,
  });

const pcaCommand = () =>
  analysisCommand({
    name: 'pca',
    description: 'maps of principal components',
    options: [componentsOption()],
    print: printComponents,
  });

const mnfCommand = () =>
  analysisCommand({
    name: 'mnf',
    description: 'maps of minimum noise fractions: components by their signal-to-noise ratios',
    options: [componentsOption()],
    print: printComponents,
  });

const anomalyCommand = () =>
  analysisCommand<AnomalyResults, AnomalyFlags>({
    name: 'anomaly',
    description:
      'maps of the distance of each spectrum from the mean of the collection, or of the pixels around it (RX)',
    options: [
      createOption(
        '--window-pixels <outer[,inner]>',
        'widths, in pixels, of the window around each pixel and of the inner window that is left out of it; odd numbers, such as 21,5',
        (text: string) => text.split(',').map(parsePositiveIntegerOption),
      ),
      createOption(
        '--components <n>',
        'with --window-pixels: number of principal components in which pixels are compared; default 10',
        parsePositiveIntegerOption,
      ),
    ],
    inputsOf: async ({ windowPixels: window, components }) => ({ window, components }),
    print: printAnomaly,
  });

const componentsOption = () =>
  createOption('--components <n>', 'number of components to map; default 10', parsePositiveIntegerOption);

function printStats({ bands, pixels, tiles }: StatsResults): void {
  const rows = bands.map(({ name, wavelength, mean, std }) => [
    name,
    wavelength.toFixed(1),
    mean.toPrecision(5),
    std.toPrecision(4),
  ]);
  printTable([['band', 'nm', 'mean', 'std'], ...rows]);
  print(`${plural(pixels, 'pixel')} of ${plural(tiles, 'tile')}`);
}

const MAX_LISTED_COMPONENTS = 10;

function printComponents(results: ComponentsResults): void {
  const { eigenvalues, shares, pixels } = results;
  const rows = eigenvalues
    .slice(0, MAX_LISTED_COMPONENTS)
    .map((value, i) => [
      `${i + 1}`,
      value.toPrecision(5),
      ...(shares ? [`${(100 * shares[i]!).toFixed(2)} %`] : []),
    ]);
  const headings = shares ? ['component', 'variance', 'share'] : ['component', 'signal and noise to noise'];
  printTable([headings, ...rows]);
  print(`${plural(pixels, 'pixel')}`);
  printMaps(results);
}

function printAnomaly(results: AnomalyResults): void {
  const { pixels, bands, loading, window, components, held = 1 } = results;
  print(`${plural(pixels, 'pixel')}, ${plural(bands.length, 'band')}${loadingText(loading)}`);
  if (window)
    print(
      `background between windows of ${window[1]} and ${window[0]} pixels, in ${plural(components!, 'component')} that explain ${formatPercent(held)} of the variance`,
    );
  printMaps(results);
}

type UnmixFlags = AnalyseFlags & {
  endmembers?: number;
  library?: string;
  targets?: string;
  method: NonNullable<UnmixInputs['method']>;
  seed?: number;
};

const unmixCommand = () =>
  analysisCommand<UnmixResults, UnmixFlags>({
    name: 'unmix',
    description: 'maps of the abundance of each endmember',
    options: [
      createOption(
        '--endmembers <n>',
        'number of endmembers to find in the collection',
        parsePositiveIntegerOption,
      ),
      createOption('--library <file>', `${LIBRARY_FILE_HELP}; used instead of endmembers of the collection`),
      targetsOption(),
      createOption(
        '--method <name>',
        'abundances that are not negative and add up to 1 (fcls), or only not negative (nnls)',
      )
        .choices(['fcls', 'nnls'])
        .default('fcls'),
      createOption('--seed <n>', 'seed of the random directions of the search', parseIntegerOption),
    ],
    inputsOf: async ({ endmembers, library, targets, method, seed }) => ({
      endmembers,
      library: library && (await readLibraryInput(library, targets)),
      method,
      seed,
    }),
    print: printUnmix,
  });

function printUnmix(results: UnmixResults): void {
  const { method, endmembers, bands } = results;
  const rows = endmembers.map(({ name, tile = '', position }, i) => [
    `${i + 1}`,
    name,
    position?.join(',') ?? '',
    tile,
  ]);
  printTable([['band', 'endmember', 'lon,lat', 'tile'], ...rows]);
  print(`${method} over ${plural(bands.length, 'band')}`);
  printMaps(results);
}

const COMMANDS = [
  statsCommand,
  pcaCommand,
  mnfCommand,
  anomalyCommand,
  matchCommand,
  unmixCommand,
  clusterCommand,
  classifyCommand,
  indicesCommand,
  smoothCommand,
  resampleCommand,
  continuumCommand,
];

export function analyseCommand(): Command {
  const analyse = new Command('analyse').description(
    'analyse the spectra of a hyperspectral collection over all its tiles',
  );
  for (const make of COMMANDS) analyse.addCommand(make());
  return analyse;
}
