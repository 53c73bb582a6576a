/** `npm run house`: its figures on a small project, and the limits of `tools/house/baseline.json` on this one. */
import assert from 'node:assert/strict';
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { faultsOf, journeyFigures, readBaseline, sourceFigures } from '../../tools/house/baseline.js';
import { measureJourneys } from '../../tools/house/journeys.js';
import { measureSource } from '../../tools/house/source.js';
import { tempFolder } from '../support/temp.js';

const root = fileURLToPath(new URL('../../../', import.meta.url));

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

test('figures of a project: doors, importers, files loaded apart, imports past a door', async (t) => {
  const folder = await tempFolder(t);
  for (const [path, text] of Object.entries(PROJECT)) {
    await mkdir(dirname(join(folder, path)), { recursive: true });
    await writeFile(join(folder, path), text);
  }
  const figures = measureSource(folder);
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
  // Two files import the tile (one through the door) and the codec; the table and the worker are loaded apart; no file imports the search.
  assert.deepEqual([...figures.singleImporters], [['src/grid/cell/cell.ts', 'src/grid/cell/index.ts']]);
  assert.deepEqual(figures.importsPastDoor, {
    inSource: ['src/query/search.ts -> src/grid/codec.ts', 'src/query/search.ts -> src/grid/tile.ts'],
    elsewhere: ['test/grid.ts -> src/grid/tile.ts'],
  });
});

test('a figure above its limit and one without a limit are faults', () => {
  const figure = (name: string, value: number) => ({ name, value, isJudged: true });
  const baseline = { doors: { limit: 2, reason: 'Measured.' } };
  assert.deepEqual(
    faultsOf([figure('doors', 2), { name: 'lines', value: 9, isJudged: false }], baseline),
    [],
  );
  assert.match(faultsOf([figure('doors', 3)], baseline)[0]!, /^doors: 3, above the limit of 2$/);
  assert.match(faultsOf([figure('files', 1)], baseline)[0]!, /^files: 1, which .* does not limit$/);
});

test('no figure of the source exceeds its limit, and every limit has its reason', () => {
  const baseline = readBaseline(root);
  for (const [name, { reason }] of Object.entries(baseline)) assert.match(reason, /\S \S.*\.$/, name);
  assert.deepEqual(faultsOf(sourceFigures(measureSource(root)), baseline), []);
});

test('no request runs more files or folders than its limit', async (t) => {
  const journeys = await measureJourneys(await tempFolder(t));
  assert.deepEqual(faultsOf(journeyFigures(journeys), readBaseline(root)), []);
});
