/** `tilewright models`: lists networks and classifiers, shows their cards, and writes their files. */
import { mkdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { Command } from 'commander';
import type { Client, ModelDocument } from '../../client/index.js';
import { formatDuration } from '../../html/index.js';
import type { ClassifierCard } from '../../hyperspectral/index.js';
import type { Metrics, ModelCard } from '../../training/index.js';
import { plural } from '../../utils/text.js';
import { withConnection } from '../connection.js';
import { cannotWrite } from '../errors.js';
import { type TargetOptions, withTarget } from '../options.js';
import {
  formatMse,
  formatPercent,
  imageMeasures,
  logToStderr,
  print,
  printJson,
  printTable,
  SERVED_NAMES,
} from '../output.js';

interface Listed {
  id: string;
  geocode: string;
  /** RFC 3339. */
  createdAt: string;
  versions: number;
}

interface ListedClassifier extends Listed {
  classifier: string;
  metrics: { validation: { oa: number; kappa: number; pixels: number } };
}

const isClassifier = (one: object): one is ListedClassifier => 'classifier' in one;

const isClassifierDocument = (model: ModelDocument<object>): model is ModelDocument<ClassifierCard> =>
  'classifier' in model.card;

function printClassifiers(classifiers: ListedClassifier[]): void {
  if (classifiers.length === 0) return;
  const rows = classifiers.map(({ id, geocode, createdAt, classifier, metrics, versions }) => [
    id,
    geocode,
    createdAt,
    classifier,
    formatPercent(metrics.validation.oa),
    metrics.validation.kappa.toFixed(3),
    versions,
  ]);
  const titles = ['model', 'place', 'trained', 'classifier', 'OA', 'kappa', 'versions'];
  printTable([titles, ...rows]);
}

function printClassifier(
  { id, version, card, latest, best }: ModelDocument<ClassifierCard>,
  versions: Awaited<ReturnType<Client['modelVersions']>>,
): void {
  const { collection, grid, geocode, classifier, strength, bands, classes, metrics, baseline } = card;
  const { oa, aa, kappa, pixels, squares, oaInterval } = metrics.validation;
  const interval = oaInterval ? `, 95 % ${oaInterval.map(formatPercent).join(' to ')}` : '';
  const wavelengths = bands.map(({ wavelength }) => wavelength);
  const range = [Math.min(...wavelengths), Math.max(...wavelengths)].map((nm) => nm.toFixed(0)).join(' to ');
  const scores = (of: { oa: number; aa: number; kappa: number }) =>
    `OA ${formatPercent(of.oa)}, AA ${formatPercent(of.aa)}, kappa ${of.kappa.toFixed(3)}`;
  const facts = [
    ['model', id],
    ['version', version],
    ['place', `${geocode} (${grid}), collection ${collection}`],
    ['trained', `${card.createdAt} in ${formatDuration(card.seconds)}, seed ${card.seed}`],
    ['classifier', `${classifier}, strength ${strength}, tilewright ${card.softwareVersion}`],
    ['reads', `${plural(bands.length, 'band')}, ${range} nm`],
    ['labels', `in ${plural(card.data.length, 'tile')}`],
    ['split', card.split],
    [
      'validation',
      `${scores({ oa, aa, kappa })}, on ${plural(pixels, 'pixel')} in ${plural(squares, 'square')}${interval}`,
    ],
    ...Object.entries(baseline).map(([name, of]) => [`  ${name}`, scores(of)]),
  ];
  printTable(facts);
  print();
  const rows = classes.map(({ code, name, pixels, squares }, i) => [
    `${code}`,
    name,
    `${pixels}`,
    `${squares}`,
    metrics.validation.classes[i]!.f1.toFixed(3),
  ]);
  printTable([['code', 'class', 'pixels', 'squares', 'F1'], ...rows]);
  print();
  const listed = (versions as unknown as (ListedClassifier & { version: string })[]).map((one) => [
    one.version,
    one.createdAt,
    one.classifier,
    formatPercent(one.metrics.validation.oa),
    [one.version === latest ? 'latest' : [], one.version === best ? 'best' : []].flat().join(', '),
  ]);
  printTable([['version', 'trained', 'classifier', 'OA', ''], ...listed]);
}

interface ModelFlags extends TargetOptions {
  version?: string;
  export?: string;
}

export function modelsCommand(): Command {
  const command = new Command('models')
    .description('list trained models; or show a model, or write its files')
    .argument('[id]', 'show this model and its versions; with --format json its complete card')
    .option('--version <version>', 'a version of the model, or best; default: the latest')
    .option('--export <path>', 'write the model: as ONNX to FILE.onnx, or all its files to a folder');
  return withTarget(command).action(async (id: string | undefined, flags: ModelFlags) => {
    if (id === undefined && (flags.version ?? flags.export) !== undefined)
      command.error('error: --version and --export need the id of a model');
    return withConnection(flags, async (target) => {
      if (id === undefined) await listModels(target.client, flags);
      else if (flags.export === undefined) await showModel(target.client, id, flags);
      else await exportModel(target.client, id, flags.export, flags);
    });
  });
}

async function listModels(client: Client, { format }: ModelFlags): Promise<void> {
  const listed = await client.models();
  if (format === 'json') return printJson(listed);
  const models = listed.models as (ListedModel | ListedClassifier)[];
  const nets = models.filter((one): one is ListedModel => !isClassifier(one));
  const rows = nets.map(({ id, geocode, createdAt, metrics, baseline, versions, ...one }) => [
    id,
    kindOf(one),
    geocode,
    createdAt,
    formatMse(metrics.validation.mse),
    metrics.validation.r2.toFixed(3),
    formatMse(baseline.linear.mse),
    formatMse(baseline.mean.mse),
    versions,
  ]);
  const titles = ['model', 'kind', 'place', 'trained', 'MSE', 'R2', 'MSE linear', 'MSE mean', 'versions'];
  if (rows.length > 0) printTable([titles, ...rows]);
  printClassifiers(models.filter(isClassifier));
  print(plural(models.length, 'model'));
  for (const id of listed.damaged ?? [])
    logToStderr(
      `warning: the record of ${id} is damaged: train it again, or "tilewright delete model ${id}"`,
    );
}

interface Trained {
  mode?: string;
  places?: number;
}

/** A base and its adaptation are versions of one id if the region has a single place. */
function kindOf({ mode, places }: Trained): string {
  if (mode === 'distributed') return places === undefined ? 'base' : `base of ${plural(places, 'place')}`;
  return mode === 'regional' ? 'regional' : 'own';
}

async function showModel(client: Client, id: string, { format, version }: ModelFlags): Promise<void> {
  const model = await client.model<ModelCard | ClassifierCard>(id, version);
  if (format === 'json') return printJson(model);
  const versions = await client.modelVersions(id);
  if (isClassifierDocument(model)) return printClassifier(model, versions);
  printModel(model as ModelDocument<ModelCard>);
  print();
  const rows = versions.map(({ version, createdAt, metrics, parent, ...one }) => [
    version,
    kindOf(one),
    createdAt,
    formatMse(metrics.validation.mse),
    metrics.validation.r2.toFixed(3),
    parent ?? '-',
    [version === model.latest ? 'latest' : [], version === model.best ? 'best' : []].flat().join(', '),
  ]);
  printTable([['version', 'kind', 'trained', 'MSE', 'R2', 'parent', ''], ...rows]);
}

/** The files of a model that the server stores or creates on request. */
const MODEL_FILES = ['model.json', 'weights.bin', 'card.json', 'model.onnx'];

async function exportModel(client: Client, id: string, path: string, flags: ModelFlags): Promise<void> {
  // `latest` and `best` may change between two files.
  const { version } = await client.model(id, flags.version);
  const isFile = path.endsWith('.onnx');
  const written = isFile ? [path] : MODEL_FILES.map((file) => join(path, file));
  try {
    await mkdir(isFile ? dirname(path) : path, { recursive: true });
    for (const [i, file] of (isFile ? ['model.onnx'] : MODEL_FILES).entries())
      await client.saveModelFile(id, version, file, written[i]!);
  } catch (error) {
    if (!(error instanceof Error && 'syscall' in error)) throw error;
    throw cannotWrite.because(error, path, error.message);
  }
  if (flags.format === 'json') printJson({ id, version, written });
  else print(`wrote version ${version} of ${id}: ${written.join(', ')}`);
}

interface ListedModel extends Listed, Trained {
  metrics: { validation: { mse: number; r2: number } };
  baseline: Record<'linear' | 'mean', { mse: number }>;
}

function printModel({ id, version, card }: ModelDocument<ModelCard>): void {
  const { collection, grid, geocode, data, patches, engine, epochs, seed, seconds, displayRange } = card;
  const days = data.map(({ datetime }) => datetime.slice(0, 10)).sort();
  const facts = [
    ['model', id],
    ['version', version],
    ['place', `${geocode} (${grid}), collection ${collection}`],
    [
      'trained',
      `${card.createdAt}, ${epochs > 0 ? `${plural(epochs, 'epoch')} ` : ''}in ${formatDuration(seconds)}, seed ${seed}`,
    ],
    ['engine', `${engine.name} ${engine.version}, tilewright ${card.softwareVersion}`],
    [
      'data',
      `${plural(days.length, 'tile')} from ${days[0]} to ${days.at(-1)}, ${megabytes(card.bytesRead)} read`,
    ],
    ['patches', `${patches.train} for training, ${patches.validation} for validation`],
    ...(card.pixelSize ? [['pixels', `${card.pixelSize.group}, ${valuesOf(card)}`]] : []),
    ['split', card.split],
    ...(card.choice ? [['serves', servesText(card.choice)]] : []),
    ...(displayRange ? [['images', `scored with 8 bits, ${displayText(displayRange)}`]] : []),
    ['start', startOf(card)],
  ];
  printTable(facts);
  print();
  const { metrics, baseline } = card;
  const measured: [string, Metrics | undefined][] = [
    ['model', metrics.validation],
    ['linear regression', baseline.linear],
    ['mean of training', baseline.mean],
    ['mean of the other dates', baseline.history],
    ['nearest clear date', baseline.nearest],
    ['median of clear dates', baseline.median],
    ['unchanged cloudy date', baseline.unchanged],
    ['model, on its training patches', metrics.train],
  ];
  const titles = Object.keys(imageMeasures(metrics.validation));
  const rows = measured.flatMap(([name, one]) => {
    if (!one) return [];
    const ofImages = imageMeasures(one);
    return [[name, formatMse(one.mse), one.r2.toFixed(3), ...titles.map((title) => ofImages[title] ?? '')]];
  });
  const { tile } = metrics;
  if (tile) {
    const ofTile = imageMeasures(tile);
    const name = `model, on the entire tile (${plural(tile.dates.length, 'date')}, training ground included)`;
    rows.push([name, '', '', ...titles.map((title) => ofTile[title] ?? '')]);
  }
  printTable([['on the validation patches', 'MSE', 'R2', ...titles], ...rows]);
}

/** The served candidate, and the errors by which it was chosen. */
function servesText({ serves, candidates, history }: NonNullable<ModelCard['choice']>): string {
  const errors = candidates.map(({ name, error }) => `${SERVED_NAMES[name]} ${formatMse(error)}`);
  const choice = errors.length > 0 ? `; MSE on what was left out: ${errors.join(', ')}` : '';
  const least = candidates.toSorted((a, b) => a.error - b.error)[0];
  const rule =
    least && least.name !== serves
      ? '; a network must be better by more than its standard error to serve'
      : '';
  return `${SERVED_NAMES[serves]}${choice}${rule}${history ? `; history: ${history.use}` : ''}`;
}

const valuesOf = ({ values }: ModelCard) =>
  values === 'scaled counts' ? '8-bit numbers divided by 255, not reflectance' : 'reflectance';

function startOf({ parent, transfer, adaptation }: ModelCard): string {
  if (adaptation?.factor === 0) return `${adaptation.base.id}, the model of the region, as it is`;
  if (parent === null) return transfer?.fresh ? `fresh: ${transfer.fresh}` : 'fresh';
  const from = `with the weights of ${parent}`;
  if (!transfer) return from;
  const { version, policy, fineTuning, distance } = transfer;
  return `${from}, version ${version}, ${policy}, distance ${distance!.toFixed(3)}, fine-tuning ${fineTuning}`;
}

const displayText = ([low, high]: [number, number]) => `${low.toFixed(4)} as 0 and ${high.toFixed(4)} as 255`;

const megabytes = (bytes: number) => `${(bytes / 1e6).toFixed(1)} MB`;
