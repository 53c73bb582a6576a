import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { Command, InvalidArgumentError } from 'commander';
import type {
  AnomalyResults,
  ClassifyInputs,
  ClassifyResults,
  ClusterResults,
  ComponentsResults,
  ContinuumResults,
  IndicesResults,
  MapResults,
  MatchInputs,
  MatchResults,
  ResampleResults,
  SmoothInputs,
  SmoothResults,
  StatsResults,
  TileCounts,
  UnmixInputs,
  UnmixResults,
} from '../../analysis/index.js';
import { labelsMissing, noSuchTargets } from '../errors.js';
import { interruptSignal } from '../interrupt.js';
import {
  type FilterOptions,
  filterOf,
  flag,
  integer,
  number,
  positiveInteger,
  type TargetOptions,
  withFilter,
  withResources,
  withTarget,
} from '../options.js';
import { count, duration, note, print, printJson, progressLine, table } from '../output.js';
import { openTarget } from '../target.js';
import { splitBands } from './tensor.js';

type AnalyseFlags = TargetOptions & FilterOptions & { bands?: string; output?: string };
type ComponentsFlags = AnalyseFlags & { components?: number };
type AnomalyFlags = AnalyseFlags & { window?: number[]; components?: number };
type MatchFlags = AnalyseFlags & {
  library: string;
  targets?: string;
  method: NonNullable<MatchInputs['method']>;
  threshold?: number;
};

type UnmixFlags = AnalyseFlags & {
  endmembers?: number;
  library?: string;
  targets?: string;
  method: NonNullable<UnmixInputs['method']>;
  seed?: number;
};

type ClassifyFlags = AnalyseFlags & {
  labels?: string;
  labelCollection?: string;
  classifier?: ClassifyInputs['classifier'];
  split: NonNullable<ClassifyInputs['split']>;
  seed?: number;
};

type IndicesFlags = AnalyseFlags & { indices?: string; list?: true };

type SmoothFlags = AnalyseFlags & Pick<SmoothInputs, 'window' | 'order' | 'derivative'>;

type ResampleFlags = AnalyseFlags & { sensor: string };

type ContinuumFlags = AnalyseFlags & { range?: [number, number]; depth?: true };

type ClusterFlags = AnalyseFlags & { clusters: number; seed?: number; iterations?: number };

type Results = TileCounts & { files: string[]; seconds: number };

export function analyseCommand(): Command {
  return new Command('analyse')
    .description('analyse the spectra of a hyperspectral collection over all its tiles')
    .addCommand(
      analysis(
        new Command('stats').description(
          'mean, standard deviation, covariance and correlation of the bands of a collection',
        ),
        async () => ({}),
        printStats,
      ),
    )
    .addCommand(
      analysis<ComponentsFlags, ComponentsResults>(
        withComponents(new Command('pca').description('maps of principal components')),
        async ({ components }) => ({ components }),
        printComponents,
      ),
    )
    .addCommand(
      analysis<ComponentsFlags, ComponentsResults>(
        withComponents(
          new Command('mnf').description(
            'maps of minimum noise fractions: components by their signal-to-noise ratios',
          ),
        ),
        async ({ components }) => ({ components }),
        printComponents,
      ),
    )
    .addCommand(
      analysis<AnomalyFlags, AnomalyResults>(
        new Command('anomaly')
          .description(
            'maps of how far each spectrum is from the mean of the collection, or of the pixels around it (RX)',
          )
          .addOption(
            flag(
              '--window <outer[,inner]>',
              'compare each pixel with those in a window around it, but for an inner one; odd sides in pixels, such as 21,5',
              (text: string) => text.split(',').map(positiveInteger),
            ),
          )
          .addOption(
            flag(
              '--components <n>',
              'with --window: principal components in which pixels are compared; default 10',
              positiveInteger,
            ),
          ),
        async ({ window, components }) => ({ window, components }),
        printAnomaly,
      ),
    )
    .addCommand(
      analysis<MatchFlags, MatchResults>(
        new Command('match')
          .description('maps of how well each pixel matches the spectra of a library, and of the best one')
          .addOption(flag('--library <file>', LIBRARY_FILE).makeOptionMandatory())
          .addOption(flag('--targets <names>', 'spectra of the library, with commas; default all'))
          .addOption(
            flag('--method <name>', 'spectral angle, information divergence, matched filter, or coherence')
              .choices(['sam', 'sid', 'mf', 'ace'] satisfies MatchInputs['method'][])
              .default('sam'),
          )
          .addOption(
            flag(
              '--threshold <value>',
              'pixels that are no better have no class: radians of sam, the value of the others',
              number,
            ),
          ),
        matchInputs,
        printMatch,
      ),
    )
    .addCommand(
      analysis<UnmixFlags, UnmixResults>(
        new Command('unmix')
          .description('maps of the abundance of each endmember')
          .addOption(flag('--endmembers <n>', 'find so many in the collection', positiveInteger))
          .addOption(flag('--library <file>', `${LIBRARY_FILE}, in place of such that are found`))
          .addOption(flag('--targets <names>', 'spectra of the library, with commas; default all'))
          .addOption(
            flag('--method <name>', 'abundances that add up to 1, or that are not negative')
              .choices(['fcls', 'nnls'])
              .default('fcls'),
          )
          .addOption(flag('--seed <n>', 'of the directions in which endmembers are sought', integer)),
        unmixInputs,
        printUnmix,
      ),
    )
    .addCommand(
      analysis<ClassifyFlags, ClassifyResults>(
        new Command('classify')
          .description('maps of classes and their probabilities, from labelled pixels')
          .addOption(
            flag(
              '--labels <file>',
              'raster of codes (0 for none), or GeoJSON of points and polygons with a property "class"',
            ),
          )
          .addOption(flag('--label-collection <id>', 'a collection whose tiles of the same cells hold codes'))
          .addOption(
            flag(
              '--classifier <name>',
              'linear discriminants, logistic regression, or a multilayer perceptron; default: the best of them on pixels kept for tuning',
            ).choices(['lda', 'logistic', 'mlp'] satisfies ClassifyInputs['classifier'][]),
          )
          .addOption(
            flag(
              '--split <how>',
              'validate on ground that did not train, or on random pixels, which overestimates the accuracy',
            )
              .choices(['place', 'random'])
              .default('place'),
          )
          .addOption(flag('--seed <n>', 'of the first weights of a perceptron', integer)),
        classifyInputs,
        printClasses,
      ),
    )
    .addCommand(
      analysis<IndicesFlags, IndicesResults>(
        new Command('indices')
          .description('maps of narrow-band indices')
          .addOption(
            flag(
              '--indices <list>',
              'names such as ndvi705,pri,cai, or expressions such as "(860nm-660nm)/(860nm+660nm)", with commas',
            ),
          )
          .addOption(flag('--list', 'print the indices that have a name, with formula and source, and end')),
        async ({ indices }) => ({ indices: indices === undefined ? undefined : splitBands(indices) }),
        printIndices,
        ({ list, format }) => (list ? listIndices(format) : undefined),
      ),
    )
    .addCommand(
      analysis<SmoothFlags, SmoothResults>(
        new Command('smooth')
          .description('smoothed spectra, or their derivatives (Savitzky-Golay)')
          .addOption(flag('--window <bands>', 'bands of a window, an odd number; default 7', positiveInteger))
          .addOption(flag('--order <n>', 'order of the polynomial; default 2', integer))
          .addOption(flag('--derivative <n>', '0, 1 or 2, per nm; default 0', integer)),
        async ({ window, order, derivative }) => ({ window, order, derivative }),
        printSmooth,
      ),
    )
    .addCommand(
      analysis<ResampleFlags, ResampleResults>(
        new Command('resample')
          .description('spectra at the bands of another sensor')
          .addOption(
            flag(
              '--sensor <name or file>',
              'sentinel-2a, landsat-8, or a CSV with the centre and the FWHM of each band, nm',
            ).makeOptionMandatory(),
          ),
        resampleInputs,
        printResample,
      ),
    )
    .addCommand(
      analysis<ContinuumFlags, ContinuumResults>(
        new Command('continuum')
          .description('spectra divided by their upper convex hull, or maps of the depth of absorptions')
          .addOption(
            flag(
              '--range <from,to>',
              'wavelengths such as 2100nm,2300nm; default: all bands',
              wavelengthRange,
            ),
          )
          .addOption(flag('--depth', 'maps of the largest depth and of its wavelength, in place of spectra')),
        async ({ range, depth }) => ({ range, depth }),
        printContinuum,
      ),
    )
    .addCommand(
      analysis<ClusterFlags, ClusterResults>(
        new Command('cluster')
          .description('maps of the clusters that spectra form (k-means), with the same codes in all tiles')
          .addOption(
            flag('--clusters <n>', 'clusters to find, 2 to 50', positiveInteger).makeOptionMandatory(),
          )
          .addOption(flag('--seed <n>', 'of the pixels at which the clusters begin; default 1', integer))
          .addOption(flag('--iterations <n>', 'the most iterations; default 100', positiveInteger)),
        async ({ clusters, seed, iterations }) => ({ clusters, seed, iterations }),
        printClusters,
      ),
    );
}

/** Such as 2100nm,2300nm or 2.1um,2.3um: nm. */
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

const LIBRARY_FILE =
  'ENVI spectral library (.sli or .hdr), or CSV with a column of wavelengths and one for each spectrum';

function withComponents(command: Command): Command {
  return command.addOption(
    flag('--components <n>', 'components to make maps of; default 10', positiveInteger),
  );
}

/** A command that runs the analysis of its name. */
function analysis<Flags extends AnalyseFlags, R extends Results>(
  command: Command,
  inputsOf: (flags: Flags) => Promise<object>,
  show: (results: R) => void,
  /** Does what flags ask for in place of an analysis; undefined if they ask for one. */
  instead: (flags: Flags) => Promise<void> | undefined = () => undefined,
): Command {
  command
    .addOption(
      flag(
        '--bands <list>',
        'names or wavelengths such as 660nm,860nm; default: all good bands that hold data',
      ),
    )
    .addOption(flag('--output <folder>', 'also write the files of the result into this folder'));
  return withTarget(withResources(withFilter(command))).action(async (flags: Flags) => {
    const other = instead(flags);
    if (other) return other;
    const inputs = await inputsOf(flags);
    const target = await openTarget(flags);
    const line = progressLine('tiles');
    try {
      const { output } = flags;
      const bands = flags.bands === undefined ? undefined : splitBands(flags.bands);
      const { job, results } = await target.client.run<R>(
        `analyse-${command.name()}`,
        { filter: filterOf(flags), bands, ...inputs },
        { signal: interruptSignal(), onProgress: line.update },
      );
      line.end();
      if (output !== undefined) {
        await mkdir(output, { recursive: true });
        for (const file of results.files) await target.client.download(job, file, join(output, file));
      }
      if (results.failures > 0) process.exitCode = 3;
      if (flags.format === 'json') return printJson({ job, ...results });
      show(results);
      printEnd(results, output);
    } finally {
      line.end();
      await target.close();
    }
  });
}

async function matchInputs({ library, targets, method, threshold }: MatchFlags): Promise<object> {
  return { library: await libraryOf(library, targets), method, threshold };
}

async function unmixInputs({ endmembers, library, targets, method, seed }: UnmixFlags): Promise<object> {
  return { endmembers, library: library && (await libraryOf(library, targets)), method, seed };
}

async function classifyInputs(flags: ClassifyFlags): Promise<object> {
  const { labels: file, labelCollection, classifier, split, seed } = flags;
  if ((file === undefined) === (labelCollection === undefined)) throw labelsMissing();
  const { readLabels } = await import('../../analysis/index.js');
  const labels = file === undefined ? { collection: labelCollection } : await readLabels(file);
  return { labels, classifier, split, seed };
}

async function resampleInputs({ sensor }: ResampleFlags): Promise<object> {
  const { readSensor, SENSOR_NAMES } = await import('../../analysis/index.js');
  if ((SENSOR_NAMES as string[]).includes(sensor)) return { sensor };
  const { bands, warning } = await readSensor(sensor);
  if (warning !== undefined) note(`${sensor}: ${warning}`);
  return { sensorBands: bands };
}

async function listIndices(format: AnalyseFlags['format']): Promise<void> {
  const { INDICES } = await import('../../analysis/index.js');
  if (format === 'json') return printJson(INDICES);
  const rows = Object.entries(INDICES).map(([name, { expression, title, source }]) => [
    ...[name, expression, `${title} (${source})`],
  ]);
  for (const line of table([['index', 'formula', 'what it is'], ...rows])) print(line);
}

/** A library as requests take it, with the spectra of these names. */
async function libraryOf(path: string, targets: string | undefined): Promise<object> {
  // Only this analysis reads files itself.
  const { readLibrary } = await import('../../analysis/index.js');
  const { wavelengths, spectra, warning } = await readLibrary(path);
  if (warning !== undefined) note(`${path}: ${warning}`);
  const names = targets?.split(',').map((name) => name.trim());
  const missing = names?.filter((name) => !spectra.some((one) => one.name === name)) ?? [];
  if (missing.length > 0)
    throw noSuchTargets(
      path,
      missing,
      spectra.map(({ name }) => name),
    );
  const chosen = names ? spectra.filter(({ name }) => names.includes(name)) : spectra;
  return { wavelengths, spectra: chosen };
}

function printStats({ bands, pixels, tiles }: StatsResults): void {
  const rows = bands.map(({ name, wavelength, mean, std }) => [
    name,
    wavelength.toFixed(1),
    mean.toPrecision(5),
    std.toPrecision(4),
  ]);
  for (const line of table([['band', 'nm', 'mean', 'std'], ...rows])) print(line);
  print(`${count(pixels, 'pixel')} of ${count(tiles, 'tile')}`);
}

function printComponents(results: ComponentsResults): void {
  const { eigenvalues, shares, pixels } = results;
  const rows = eigenvalues
    .slice(0, LISTED)
    .map((value, i) => [
      `${i + 1}`,
      value.toPrecision(5),
      ...(shares ? [`${(100 * shares[i]!).toFixed(2)} %`] : []),
    ]);
  const headings = shares ? ['component', 'variance', 'share'] : ['component', 'signal and noise to noise'];
  for (const line of table([headings, ...rows])) print(line);
  print(`${count(pixels, 'pixel')}`);
  printMaps(results);
}

function printAnomaly(results: AnomalyResults): void {
  const { pixels, bands, loading, window, components, held = 1 } = results;
  print(`${count(pixels, 'pixel')}, ${count(bands.length, 'band')}${loadingText(loading)}`);
  if (window)
    print(
      `background between windows of ${window[1]} and ${window[0]} pixels, in ${count(components!, 'component')} that hold ${(100 * held).toFixed(1)} % of the variance`,
    );
  printMaps(results);
}

function printMatch(results: MatchResults): void {
  const { method, targets, bands, uncovered, loading } = results;
  for (const line of table([['code', 'target'], ...targets.map(({ code, name }) => [`${code}`, name])]))
    print(line);
  const left = uncovered > 0 ? `, ${uncovered} left out because the library does not cover them` : '';
  print(`${method} over ${count(bands.length, 'band')}${left}${loadingText(loading)}`);
  printMaps(results);
}

function printUnmix(results: UnmixResults): void {
  const { method, endmembers, bands } = results;
  const rows = endmembers.map(({ name, tile = '', pixel = '' }, i) => [`${i + 1}`, name, tile, `${pixel}`]);
  for (const line of table([['band', 'endmember', 'tile', 'pixel'], ...rows])) print(line);
  print(`${method} over ${count(bands.length, 'band')}`);
  printMaps(results);
}

function printClasses(results: ClassifyResults): void {
  const { classes, names, oa, aa, kappa, pixels, split, oaByPlace, compared, calibration, model } = results;
  const percent = (share: number) => `${(100 * share).toFixed(1)} %`;
  const rows = classes.map(({ code, pixels, recall, precision, f1 }) => [
    ...[`${code}`, names[code] ?? '', `${pixels}`],
    ...[percent(recall), percent(precision), f1.toFixed(3)],
  ]);
  for (const line of table([['code', 'class', 'pixels', 'recall', 'precision', 'F1'], ...rows])) print(line);
  const where = split === 'place' ? 'of ground that did not train' : 'at random';
  print(
    `overall accuracy ${percent(oa)}, average ${percent(aa)}, kappa ${kappa.toFixed(3)}, on ${count(pixels, 'pixel')} ${where}`,
  );
  if (oaByPlace !== undefined)
    print(
      `on ground that did not train it is ${percent(oaByPlace)}: the random split overestimates it by ${(100 * (oa - oaByPlace)).toFixed(1)} points`,
    );
  const tried = compared.map((one) => [
    ...[one.classifier === results.classifier ? `${one.classifier} (taken)` : one.classifier],
    ...[`${one.strength}`, percent(one.tuned), percent(one.oa), percent(one.aa), one.kappa.toFixed(3)],
  ]);
  print();
  const titles = ['classifier', 'strength', 'tuning OA', 'OA', 'AA', 'kappa'];
  for (const line of table([titles, ...tried])) print(line);
  const { error, temperature } = calibration;
  print(`calibration error of the probabilities ${percent(error)}, temperature ${temperature.toFixed(2)}`);
  printMaps(results);
  print(`${model}: tilewright predict ${model} --collection OTHER`);
}

function printIndices(results: IndicesResults): void {
  const rows = results.indices.map(({ name, bands }) => [
    name,
    bands.map(({ asked, name, wavelength }) => `${asked}: ${name} (${wavelength.toFixed(1)} nm)`).join(', '),
  ]);
  for (const line of table([['index', 'bands'], ...rows])) print(line);
  printMaps(results);
}

function printSmooth(results: SmoothResults): void {
  const { window, order, derivative, runs, leftOut, bands } = results;
  const what = derivative === 0 ? 'smoothed' : `derivative ${derivative} per nm`;
  const left = leftOut > 0 ? `, ${leftOut} left out in shorter runs` : '';
  print(`${what}: window ${window}, order ${order}`);
  print(`${count(bands.length, 'band')} in ${count(runs.length, 'run')}${left}`);
  printMaps(results);
}

function printResample(results: ResampleResults): void {
  const rows = results.sensorBands.map(({ name, wavelength, fwhm }) => [name, `${wavelength}`, `${fwhm}`]);
  for (const line of table([['band', 'nm', 'FWHM'], ...rows])) print(line);
  if (results.uncovered.length > 0) print(`not covered: ${results.uncovered.join(', ')}`);
  printMaps(results);
}

function printContinuum(results: ContinuumResults): void {
  const { bands, outside, depth } = results;
  const left = outside > 0 ? `, ${outside} beyond the range` : '';
  print(`${depth ? 'depth' : 'continuum removed'}: ${count(bands.length, 'band')}${left}`);
  printMaps(results);
}

function printClusters(results: ClusterResults): void {
  const { clusters, pixels, explained, iterations, converged } = results;
  const percent = (share: number) => `${(100 * share).toFixed(1)} %`;
  const rows = clusters.map(({ code, pixels: own, spread }) => [
    ...[`${code}`, `${own}`, percent(own / pixels), spread.toPrecision(4)],
  ]);
  for (const line of table([['code', 'pixels', 'share', 'rms distance'], ...rows])) print(line);
  const rest = converged ? '' : ', after which the centres still moved';
  print(
    `${count(clusters.length, 'cluster')} hold ${percent(explained)} of the variance of ${count(pixels, 'pixel')}; ${count(iterations, 'iteration')}${rest}`,
  );
  printMaps(results);
}

function loadingText(loading = 0): string {
  return loading > 0
    ? `; with fewer than 10 pixels for each band, ${loading} of the mean variance was added to the diagonal of the covariance`
    : '';
}

function printMaps({ tiles, unchanged, source, collection }: MapResults): void {
  print(
    `${count(tiles, 'tile')} made, ${unchanged} unchanged: --collection ${collection} --source ${source}`,
  );
}

const LISTED = 10;

function printEnd({ skipped, failed, files, seconds }: Results, output: string | undefined): void {
  for (const [reason, number] of Object.entries(skipped))
    note(`${count(number, 'tile')} left out: ${reason}`);
  for (const { tile, message } of failed) note(`failed: ${tile}: ${message}`);
  const written = output === undefined ? '' : `${count(files.length, 'file')} in ${output}, `;
  print(`${written}${duration(seconds)}`);
}
