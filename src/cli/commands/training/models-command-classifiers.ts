/** The text output of stored classifiers. */

import type { Client, ModelDocument } from '../../../client/index.js';
import { formatDuration } from '../../../html/index.js';
import type { ClassifierCard } from '../../../hyperspectral/index.js';
import { plural } from '../../../utils/plural.js';
import { formatPercent, print, printTable } from '../../output/index.js';

export interface Listed {
  id: string;
  geocode: string;
  /** RFC 3339. */
  createdAt: string;
  versions: number;
}

export interface ListedClassifier extends Listed {
  classifier: string;
  metrics: { validation: { oa: number; kappa: number; pixels: number } };
}

export const isClassifier = (one: object): one is ListedClassifier => 'classifier' in one;

export const isClassifierDocument = (model: ModelDocument<object>): model is ModelDocument<ClassifierCard> =>
  'classifier' in model.card;

export function printClassifiers(classifiers: ListedClassifier[]): void {
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

export function printClassifier(
  { id, version, card, latest, best }: ModelDocument<ClassifierCard>,
  versions: Awaited<ReturnType<Client['modelVersions']>>,
): void {
  const { collection, grid, geocode, classifier, strength, bands, classes, metrics, baseline } = card;
  const { oa, aa, kappa, pixels } = metrics.validation;
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
    ['validation', `${scores({ oa, aa, kappa })}, on ${plural(pixels, 'pixel')}`],
    ...Object.entries(baseline).map(([name, of]) => [`  ${name}`, scores(of)]),
  ];
  printTable(facts);
  print();
  const rows = classes.map(({ code, name, train, validation }, i) => [
    `${code}`,
    name,
    `${train}`,
    `${validation}`,
    metrics.validation.classes[i]!.f1.toFixed(3),
  ]);
  printTable([['code', 'class', 'trained on', 'validated on', 'F1'], ...rows]);
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
