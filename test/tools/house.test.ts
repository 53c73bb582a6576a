/** `npm run house`: its figures on a small project, and the limits of `tools/house/baseline.json` on this one. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import {
  acceptFigures,
  faultsOf,
  journeyFigures,
  readBaseline,
  sourceFigures,
} from '../../tools/house/baseline.js';
import { measureJourneys } from '../../tools/house/journeys.js';
import { measureSource, type SourceFigures } from '../../tools/house/source.js';
import { tempFolder } from '../support/temp.js';

const root = fileURLToPath(new URL('../../../', import.meta.url));
const MAIN = fileURLToPath(new URL('../../tools/house/main.js', import.meta.url));

const PROJECT = {
  'tsconfig.json': JSON.stringify({
    compilerOptions: {
      module: 'nodenext',
      target: 'es2023',
      lib: ['es2023', 'dom'],
      types: [],
      strict: true,
    },
    include: ['src', 'test'],
  }),
  'package.json': '{ "type": "module" }',
  'src/node.ts': `import { Tile } from './grid/index.js';\nexport const open = () => new Tile();\n`,
  'src/grid/index.ts': [
    '/** Cells. */',
    `export { Tile, type Bounds } from './tile.js';`,
    `export * from './cell/cell.js';`,
    'export {',
    '  decode,',
    `} from './codec.js';`,
  ].join('\n'),
  'src/grid/tile.ts': [
    `import { decode } from './codec.js';`,
    'export interface Bounds { west: number }',
    'export class Tile {',
    '  #cells = 0;',
    '  constructor() { this.#count(); }',
    '  get cells() { return this.#cells; }',
    '  set cells(count: number) { this.#cells = count; }',
    '  static of() { return new Tile(); }',
    '  split() { return decode(this.size()); }',
    '  protected size() { return 1; }',
    '  private merge() {}',
    '  #count() { this.merge(); }',
    '}',
  ].join('\n'),
  'src/grid/cell/index.ts': `export * from './cell.js';`,
  'src/grid/cell/cell.ts':
    'export type Cell = string;\nexport const parentOf = (cell: Cell) => cell.slice(0, -1);\n',
  'src/grid/codec.ts': `export const decode = (code: number) => import('./lazy.js').then(({ table }) => table[code]);`,
  'src/grid/lazy.ts': 'export const table = [1, 2];',
  'src/grid/worker.ts': 'export type Result = number;',
  'src/grid/pool.ts': `import type { Result } from './worker.js';\nexport const run = (): [URL, Result] => [new URL('./worker.js', import.meta.url), 1];`,
  'src/query/index.ts': `export { search } from './search.js';`,
  'src/query/search.ts': [
    `import { decode } from '../grid/codec.js';`,
    `export const search = (bounds: import('../grid/tile.js').Bounds) => decode(bounds.west);`,
  ].join('\n'),
  'test/grid.ts': `import { Tile } from '../src/grid/tile.js';\nimport { search } from '../src/query/index.js';\nexport const used = [Tile, search];\n`,
};

async function measure(t: TestContext, project: Record<string, string>): Promise<SourceFigures> {
  const folder = await tempFolder(t);
  for (const [path, text] of Object.entries(project)) {
    await mkdir(dirname(join(folder, path)), { recursive: true });
    await writeFile(join(folder, path), text);
  }
  return measureSource(folder);
}

test('figures of a project: doors, importers, files loaded apart, imports past a door', async (t) => {
  const figures = await measure(t, PROJECT);
  assert.equal(figures.folders.get('src')?.files, 11);
  assert.deepEqual(figures.folders.get('test'), { files: 1, lines: 3 });
  // One line each of node, tile, pool, cell/index, query/index and search, and five of the door of grid.
  assert.equal(figures.importLines, 11);
  assert.deepEqual(figures.innerIndexes, ['src/grid/cell/index.ts']);
  // Tile, Bounds, Cell, parentOf, decode; cells, of, split.
  assert.deepEqual(
    [...figures.doorNames],
    [
      ['grid', 8],
      ['the package', 1],
      ['query', 1],
    ],
  );
  // Two files import the tile, one through the door, and the codec. The table and the worker are loaded apart, the cell is re-exported.
  assert.deepEqual([...figures.singleImporters], []);
  assert.deepEqual(figures.importsPastDoor, {
    inSource: ['src/query/search.ts -> src/grid/codec.ts', 'src/query/search.ts -> src/grid/tile.ts'],
    elsewhere: ['test/grid.ts -> src/grid/tile.ts'],
  });
});

/** Each way to import through a door leads to the file that declares the name. */
const WAYS = {
  'tsconfig.json': PROJECT['tsconfig.json'],
  'package.json': PROJECT['package.json'],
  'src/node.ts': '',
  'src/grid/index.ts': [
    `export { default } from './middle.js';`,
    `export * from './middle.js';`,
    `export * as shapes from './shapes.js';`,
  ].join('\n'),
  'src/grid/middle.ts': [
    `export { default } from './default.js';`,
    `export { named } from './named.js';`,
    `export type { Shape } from './type.js';`,
    `export { later } from './later.js';`,
  ].join('\n'),
  'src/grid/default.ts': 'export default class { area() {} }',
  'src/grid/named.ts': 'export const named = class { side() {} };',
  'src/grid/type.ts': 'export interface Shape { area(): void }',
  'src/grid/later.ts': [
    `import required = require('./required.js');`,
    `export const later = (kind: string) => [required, import(\`./kernel.js?\${kind}\`)];`,
    `export type Kernel = typeof import('./kernel.js');`,
  ].join('\n'),
  'src/grid/required.ts': 'export const required = 1;',
  'src/grid/kernel.ts': 'export const kernel = 1;',
  'src/grid/shapes.ts':
    'export abstract class Square { abstract draw(): void; draw2(n: 1): void; draw2(): void {} }',
  'src/query/index.ts': `import './effect.js';`,
  'src/query/effect.ts': 'export {};',
  'src/query/default.ts': `import Grid, {} from '../grid/index.js';\nexport const grid = new Grid();`,
  'src/query/named.ts': `import { named as other, shapes } from '../grid/index.js';\nexport const used = [other, shapes];`,
  'src/query/type.ts': `export type Area = import('../grid/index.js').Shape['area'];`,
  'src/query/later.ts': `export async function later() {\n  const { later: other } = await import('../grid/index.js');\n  return other;\n}`,
  'test/urls.ts': `export const urls = [new URL('../src/grid/', import.meta.url), new URL('../src/grid/table.wasm', import.meta.url)];`,
};

test('every form of import leads to the file that declares the name', async (t) => {
  const figures = await measure(t, WAYS);
  assert.deepEqual(Object.fromEntries(figures.singleImporters), {
    'src/grid/default.ts': 'src/query/default.ts',
    'src/grid/named.ts': 'src/query/named.ts',
    'src/grid/shapes.ts': 'src/query/named.ts',
    'src/grid/type.ts': 'src/query/type.ts',
    'src/grid/later.ts': 'src/query/later.ts',
    'src/grid/required.ts': 'src/grid/later.ts',
    'src/query/effect.ts': 'src/query/index.ts',
  });
  // default, area; named, side; Shape; later; shapes, Square, draw, draw2.
  assert.equal(figures.doorNames.get('grid'), 10);
  assert.deepEqual(figures.importsPastDoor, { inSource: [], elsewhere: [] });

  const { singleImporters } = await measure(t, {
    ...WAYS,
    'src/query/all.ts': `import * as grid from '../grid/index.js';\nexport const all = grid;`,
  });
  assert.deepEqual([...singleImporters.keys()].sort(), ['src/grid/required.ts', 'src/query/effect.ts']);
});

test('a figure above its limit, one without a limit and a limit without a figure are faults', () => {
  const figure = (name: string, value: number) => ({ name, value, isJudged: true });
  const baseline = { doors: { limit: 2, reason: 'Measured.' } };
  assert.deepEqual(
    faultsOf([figure('doors', 2), { name: 'lines', value: 9, isJudged: false }], baseline),
    [],
  );
  assert.match(faultsOf([figure('doors', 3)], baseline)[0]!, /^doors: 3, above the limit of 2$/);
  const [unlimited, unmeasured] = faultsOf([figure('files', 1)], baseline);
  assert.match(unlimited!, /^files: 1, which .* does not limit$/);
  assert.match(unmeasured!, /^doors: no such figure/);
});

test('accepted figures keep the reasons of limits that stay, and drop limits without a figure', async (t) => {
  const folder = await tempFolder(t);
  const path = join(folder, 'tools/house/baseline.json');
  await mkdir(dirname(path), { recursive: true });
  await writeFile(
    path,
    JSON.stringify({
      gone: { limit: 1, reason: 'It was there.' },
      files: { limit: 3, reason: 'It was split.' },
      doors: { limit: 2, reason: 'Measured.' },
    }),
  );
  const figures = [
    { name: 'lines', value: 9, isJudged: false },
    { name: 'doors', value: 2, isJudged: true },
    { name: 'files', value: 4, isJudged: true },
  ];
  acceptFigures(folder, figures, 'It was merged.');
  assert.deepEqual(Object.entries(readBaseline(folder)), [
    ['doors', { limit: 2, reason: 'Measured.' }],
    ['files', { limit: 4, reason: 'It was merged.' }],
  ]);
  const accepted = await readFile(path, 'utf8');
  acceptFigures(folder, figures, 'Nothing changed.');
  assert.equal(await readFile(path, 'utf8'), accepted);
});

test('wrong options are an error in one line', () => {
  for (const args of [['--nothing'], ['--accept', 'merged']]) {
    const { status, stdout, stderr } = spawnSync(process.execPath, [MAIN, ...args], { encoding: 'utf8' });
    assert.deepEqual([status, stdout], [2, ''], args.join(' '));
    assert.match(stderr, /^error: .+\n$/);
  }
});

test('no figure of this project exceeds its limit, and every limit has its figure and its reason', async (t) => {
  const baseline = readBaseline(root);
  for (const [name, { reason }] of Object.entries(baseline)) assert.match(reason, /\S \S.*\.$/, name);
  const journeys = await measureJourneys(await tempFolder(t));
  const figures = [...sourceFigures(measureSource(root)), ...journeyFigures(journeys)];
  assert.deepEqual(faultsOf(figures, baseline), []);
});
