/** Measures how deep the parts of `src` are, and compares the figures with `baseline.json`. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { messageOf } from '../../src/errors.js';
import { acceptFigures, faultsOf, journeyFigures, readBaseline, sourceFigures, table } from './baseline.js';
import { measureJourneys } from './journeys.js';
import { measureSource } from './source.js';

const USAGE = `npm run house -- [--list] [--accept REASON]

Prints, with its limit from tools/house/baseline.json: files and lines; files that one other file imports; names at the door of each part;
imports past a door; the share of import lines; the files, folders and calls of five requests. Exits with 1 if a figure exceeds its limit or has
none, or if a limit has no figure.

  --list            also list the files with one importer, the imports past a door, and the files of each request
  --accept REASON   write the figures as the new limits, with this sentence beside those that changed
`;

function wrongUsage(message: string): never {
  console.error(`error: ${message}`);
  process.exit(2);
}

function readOptions() {
  try {
    return parseArgs({
      options: {
        help: { type: 'boolean', short: 'h' },
        list: { type: 'boolean' },
        accept: { type: 'string' },
      },
    }).values;
  } catch (error) {
    return wrongUsage(messageOf(error));
  }
}

const values = readOptions();
if (values.help) {
  console.log(USAGE);
  process.exit(0);
}
if (values.accept !== undefined && !/\S \S.*\.$/.test(values.accept))
  wrongUsage(
    '--accept takes a sentence that says why the figures changed, such as "The grid hands out its cells."',
  );

const root = fileURLToPath(new URL('../../../', import.meta.url));
const folder = await mkdtemp(join(tmpdir(), 'tilewright-house-'));
try {
  const source = measureSource(root);
  const journeys = await measureJourneys(folder);
  const figures = [...sourceFigures(source), ...journeyFigures(journeys)];
  if (values.list) {
    const lists: [title: string, lines: string[]][] = [
      [
        'Files with one importer',
        [...source.singleImporters].map(([file, importer]) => `${file} <- ${importer}`),
      ],
      ['Imports past a door', [...source.importsPastDoor.inSource, ...source.importsPastDoor.elsewhere]],
      ...journeys.map(({ name, files }): [string, string[]] => [`Journey ${name}`, files]),
    ];
    for (const [title, lines] of lists) console.log(`${title}:\n  ${lines.join('\n  ')}\n`);
  }
  if (values.accept !== undefined) acceptFigures(root, figures, values.accept);
  const baseline = readBaseline(root);
  console.log(table(figures, baseline));
  const faults = faultsOf(figures, baseline);
  for (const fault of faults) console.error(`error: ${fault}`);
  process.exitCode = faults.length > 0 ? 1 : 0;
} finally {
  await rm(folder, { recursive: true });
}
