import type { ClassifyInputs, ClassifyResults } from '../../../hyperspectral/index.js';
import { plural } from '../../../utils/plural.js';
import { labelsMissing } from '../../errors.js';
import { createOption, parseIntegerOption } from '../../options/index.js';
import { formatBytes, formatPercent, print, printTable } from '../../output/index.js';
import { type AnalyseFlags, analysisCommand, printMaps } from './analysis-command.js';

type ClassifyFlags = AnalyseFlags & {
  labels?: string;
  labelCollection?: string;
  classifier?: ClassifyInputs['classifier'];
  split: NonNullable<ClassifyInputs['split']>;
} & Pick<ClassifyInputs, 'epochs' | 'precision' | 'seed'>;

export const classifyCommand = () =>
  analysisCommand<ClassifyResults, ClassifyFlags>({
    name: 'classify',
    description: 'maps of classes and their probabilities, from labelled pixels',
    options: [
      createOption(
        '--labels <file>',
        'raster of codes (0 for none), or GeoJSON of points and polygons with a property "class"',
      ),
      createOption('--label-collection <id>', 'a collection whose tiles of the same cells hold codes'),
      createOption(
        '--classifier <name>',
        'linear discriminant analysis, logistic regression, a multilayer perceptron, or a convolutional network along the bands (cnn1d), over the ground (cnn2d) or both (resnet3d); default: the best of the first three on tuning pixels',
      ).choices([
        'lda',
        'logistic',
        'mlp',
        'cnn1d',
        'cnn2d',
        'resnet3d',
      ] satisfies ClassifyInputs['classifier'][]),
      createOption(
        '--split <how>',
        'validate on separate ground (place), or on random pixels, which overestimates the accuracy',
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
      createOption('--seed <n>', 'seed of the initial weights of a network', parseIntegerOption),
    ],
    inputsOf: classifyInputs,
    print: printClasses,
  });

async function classifyInputs(flags: ClassifyFlags): Promise<object> {
  const { labels: file, labelCollection, classifier, split, epochs, precision, seed } = flags;
  if ((file === undefined) === (labelCollection === undefined)) throw labelsMissing();
  const { readLabels } = await import('../../../hyperspectral/index.js');
  const labels = file === undefined ? { collection: labelCollection } : await readLabels(file);
  return { labels, classifier, split, epochs, precision, seed };
}

/** With fewer, the standard error of a recall of 90 % is above 5 points. */
const MIN_PIXELS_PER_CLASS = 36;

function printClasses(results: ClassifyResults, flags: ClassifyFlags): void {
  const { classes, names, oa, aa, kappa, pixels, split, oaByPlace, compared, calibration, model } = results;
  const { training } = results;
  const rows = classes.map(({ code, pixels, recall, precision, f1 }) => [
    `${code}`,
    names[code] ?? '',
    `${pixels}`,
    formatPercent(recall),
    formatPercent(precision),
    f1.toFixed(3),
  ]);
  printTable([['code', 'class', 'pixels', 'recall', 'precision', 'F1'], ...rows]);
  const scarce = classes
    .filter(({ pixels }) => pixels < MIN_PIXELS_PER_CLASS)
    .map(({ code }) => names[code] ?? `${code}`);
  if (scarce.length > 0)
    print(
      `with fewer than ${MIN_PIXELS_PER_CLASS} pixels, the scores of ${scarce.join(', ')} are uncertain by more than 5 points`,
    );
  const where = split === 'place' ? 'of separate ground' : 'at random';
  print(
    `overall accuracy ${formatPercent(oa)}, average ${formatPercent(aa)}, kappa ${kappa.toFixed(3)}, on ${plural(pixels, 'pixel')} ${where}`,
  );
  if (oaByPlace !== undefined)
    print(
      `on separate ground it is ${formatPercent(oaByPlace)}: the random split overestimates it by ${(100 * (oa - oaByPlace)).toFixed(1)} points`,
    );
  const tried = compared.map((one) => [
    one.classifier === results.classifier ? `${one.classifier} (chosen)` : one.classifier,
    `${one.strength}`,
    one.entropy?.toFixed(3) ?? '',
    formatPercent(one.tuned),
    formatPercent(one.oa),
    formatPercent(one.aa),
    one.kappa.toFixed(3),
  ]);
  print();
  const titles = ['classifier', 'strength', 'tuning entropy', 'tuning OA', 'OA', 'AA', 'kappa'];
  printTable([titles, ...tried]);
  if (flags.classifier === undefined && compared.some(({ entropy }) => entropy > 0))
    print(`${results.classifier} was chosen because it has the lowest cross-entropy on the tuning pixels`);
  const { error, uncalibrated, temperature } = calibration;
  print(
    `calibration error of the probabilities ${formatPercent(error)} with temperature ${temperature.toFixed(2)}, ${formatPercent(uncalibrated)} without`,
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
