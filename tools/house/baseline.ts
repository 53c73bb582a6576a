/** The judged figures and `baseline.json`, which limits each of them and gives the reason for its last change. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Journey } from './journeys.js';
import type { SourceFigures } from './source.js';

export interface Figure {
  name: string;
  value: number;
  /** Figures that are not judged are printed only. */
  isJudged: boolean;
}

export interface Limit {
  limit: number;
  /** A sentence that says why the limit has this value. */
  reason: string;
}

/** By the name of the figure. */
export type Baseline = Record<string, Limit>;

const pathOf = (root: string) => join(root, 'tools/house/baseline.json');

export function readBaseline(root: string): Baseline {
  return JSON.parse(readFileSync(pathOf(root), 'utf8')) as Baseline;
}

export function sourceFigures(source: SourceFigures): Figure[] {
  const printed = (name: string, value: number) => ({ name, value, isJudged: false });
  const judged = (name: string, value: number) => ({ name, value, isJudged: true });
  const byName = [...source.doorNames].sort(([a], [b]) => (a < b ? -1 : 1));
  return [
    ...[...source.folders].flatMap(([folder, { files, lines }]) => [
      printed(`files of ${folder}`, files),
      printed(`lines of ${folder}`, lines),
    ]),
    printed(
      'lines of src that import or re-export, percent',
      Math.round((1000 * source.importLines) / source.folders.get('src')!.lines) / 10,
    ),
    judged('inner index.ts of src', source.innerIndexes.length),
    judged('files of src with one importer', source.singleImporters.size),
    judged('imports past a door by src', source.importsPastDoor.inSource.length),
    judged('imports past a door by tests, bench and tools', source.importsPastDoor.elsewhere.length),
    ...byName.map(([part, names]) => judged(`names at the door of ${part}`, names)),
  ];
}

export function journeyFigures(journeys: Journey[]): Figure[] {
  return journeys.flatMap(({ name, files, folders, calls }) => [
    { name: `journey ${name}: files`, value: files.length, isJudged: true },
    { name: `journey ${name}: folders`, value: folders, isJudged: true },
    { name: `journey ${name}: calls`, value: calls, isJudged: false },
  ]);
}

/** The judged figures that exceed their limit or have none, and the limits without a figure, as sentences. */
export function faultsOf(figures: Figure[], baseline: Baseline): string[] {
  const judged = figures.filter(({ isJudged }) => isJudged);
  const unmeasured = new Set(Object.keys(baseline));
  for (const { name } of judged) unmeasured.delete(name);
  return [
    ...judged.flatMap(({ name, value }) => {
      const entry = baseline[name];
      if (entry === undefined) return [`${name}: ${value}, which tools/house/baseline.json does not limit`];
      return value > entry.limit ? [`${name}: ${value}, above the limit of ${entry.limit}`] : [];
    }),
    ...[...unmeasured].map((name) => `${name}: no such figure, but tools/house/baseline.json limits it`),
  ];
}

/** A line for each figure: its value, its limit, and the difference if there is one. */
export function table(figures: Figure[], baseline: Baseline): string {
  const width = Math.max(...figures.map(({ name }) => name.length));
  return figures
    .map(({ name, value, isJudged }) => {
      const limit = isJudged ? baseline[name]?.limit : undefined;
      const change =
        limit === undefined || limit === value ? '' : `${value > limit ? '+' : ''}${value - limit}`;
      return `${name.padEnd(width)} ${String(value).padStart(9)} ${String(limit ?? '').padStart(8)} ${change}`.trimEnd();
    })
    .join('\n');
}

/** Writes the judged figures as the new limits. A limit that changes gets the reason; figures that no longer exist leave the file. */
export function acceptFigures(root: string, figures: Figure[], reason: string): void {
  const before = readBaseline(root);
  const entries = figures
    .filter(({ isJudged }) => isJudged)
    .map(({ name, value }) => {
      const entry = before[name];
      return [name, entry?.limit === value ? entry : { limit: value, reason }];
    });
  writeFileSync(pathOf(root), `${JSON.stringify(Object.fromEntries(entries), null, 2)}\n`);
}
