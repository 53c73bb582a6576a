/** A region by the real command, from the archive and from the same files on the disk. */
import { createHash } from 'node:crypto';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Bbox } from '../../src/grid/index.js';
import { type BenchResult, median, result, spend } from '../support/bench.js';
import { measureTree, type TreeCost } from '../support/measure-tree.js';
import { markdown } from '../training/markdown.js';
import { type ArchiveServer, type Counts, type Faults, fileRequests } from './archive-server.js';
import { type Mark, ratios, spread } from './figures.js';
import { ASSET_NAMES, COLLECTION, type ItemFiles } from './item-files.js';
import { PRECISION } from './region.js';

const COMMAND = fileURLToPath(new URL('../../command/main.js', import.meta.url));
/** Every fourth answer is 503, and every tenth is cut off. */
const FAULTS: Faults = { unavailable: 4, reset: 10 };

interface Ingest {
  cost: TreeCost;
  counts: Counts;
  /** SHA-256 of each file of a tile, by cell and name. */
  digests: Map<string, string>;
}

export interface WholeIngests {
  remote: Ingest[];
  disk: Ingest[];
  /** The command that made a data folder once more. */
  again: Ingest;
  faulty: Ingest;
  /** CPU seconds of the digests of the complete files, which the ingest from the disk makes. */
  digestSeconds: number;
}

export async function measureIngests(
  server: ArchiveServer,
  { folder }: ItemFiles,
  bbox: Bbox,
  rounds: number,
): Promise<WholeIngests> {
  const { api, host } = server;
  const archive = ['--from-stac', api, '--collection', COLLECTION, '--bands', ASSET_NAMES.join()];
  archive.push('--allow-host', host);
  const region = ['--bbox', bbox.join(), '--precision', `${PRECISION}`];
  const ingest = async (data: string, input: string[], faults?: Faults): Promise<Ingest> => {
    const args = [COMMAND, 'ingest', ...input, ...region, '--data', data];
    const { value, counts } = await server.count(() => measureTree(process.execPath, args), faults);
    return { cost: value, counts, digests: tileDigests(data) };
  };
  const inNewFolder = async <T>(work: (data: string) => Promise<T>): Promise<T> => {
    const data = mkdtempSync(join(tmpdir(), 'tilewright-bench-'));
    try {
      return await work(data);
    } finally {
      rmSync(data, { recursive: true });
    }
  };
  const [remote, disk]: Ingest[][] = [[], []];
  for (let round = 0; round < rounds; round++) {
    remote!.push(await inNewFolder((data) => ingest(data, archive)));
    disk!.push(await inNewFolder((data) => ingest(data, [folder])));
  }
  const again = await inNewFolder(async (data) => {
    await ingest(data, archive);
    return ingest(data, archive);
  });
  const faulty = await inNewFolder((data) => ingest(data, archive, FAULTS));
  const digests = await spend(async () => {
    for (const name of ASSET_NAMES)
      createHash('sha256')
        .update(readFileSync(join(folder, `${name}.tif`)))
        .digest();
  });
  return { remote: remote!, disk: disk!, again, faulty, digestSeconds: digests.cpuSeconds };
}

/** The folder of a tile is `CELL/ID/VERSION`, and the version differs between ingests. */
function tileDigests(data: string): Map<string, string> {
  const folder = join(data, 'tiles');
  if (!existsSync(folder)) return new Map();
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((file) =>
    file.endsWith('.tif'),
  );
  return new Map(
    files.map((file) => {
      const digest = createHash('sha256')
        .update(readFileSync(join(folder, file)))
        .digest('hex');
      return [file.replace(/[^/]+\/([^/]+)$/, '$1'), digest];
    }),
  );
}

/** Number of files that only one side has, or that differ. */
function differences(one: Ingest, other: Ingest): number {
  const names = new Set([...one.digests.keys(), ...other.digests.keys()]);
  return [...names].filter((name) => one.digests.get(name) !== other.digests.get(name)).length;
}

const cpuOf = (ingests: Ingest[]) => ingests.map(({ cost }) => cost.cpuSeconds);
const wallOf = (ingests: Ingest[]) => ingests.map(({ cost }) => cost.wallSeconds);
const memoryOf = (ingests: Ingest[]) => ingests.map(({ cost }) => cost.peakMB);

export function ingestTable({ remote, disk }: WholeIngests): string {
  const row = (name: string, ingests: Ingest[]) => [
    name,
    ...[cpuOf, wallOf, memoryOf].map((of) => spread(of(ingests))),
  ];
  const ratio = [cpuOf, wallOf, memoryOf].map((of) => spread(ratios(of(remote), of(disk))));
  return markdown(
    ['ingest of the region', 'CPU s', 'wall s', 'peak memory, MB'],
    [row('from the archive', remote), row('from the disk', disk), ['ratio', ...ratio]],
  ).join('\n');
}

export function faultTable({ remote, disk, again, faulty }: WholeIngests): string {
  const row = (name: string, ingest: Ingest, files: string) => {
    const { counts } = ingest;
    const requests = [counts.searches, fileRequests(counts), counts.unavailable, counts.resets];
    return [name, ...requests.map(String), files];
  };
  const beside = (ingest: Ingest) =>
    `${ingest.digests.size}, ${differences(ingest, disk[0]!)} differ from the disk`;
  return markdown(
    ['run', 'requests of the search', 'requests for files', '503', 'cut off', 'files of tiles'],
    [
      row('first', remote[0]!, beside(remote[0]!)),
      row('second, same data folder', again, beside(again)),
      row('with faults, new data folder', faulty, beside(faulty)),
    ],
  ).join('\n');
}

export function ingestMarks({ remote, disk, again, faulty }: WholeIngests): Mark[] {
  return [
    { name: 'ingest: CPU / from the disk', most: 1.3, measured: median(ratios(cpuOf(remote), cpuOf(disk))) },
    {
      name: 'files of tiles that differ from those from the disk',
      most: 0,
      measured: Math.max(...remote.map((ingest) => differences(ingest, disk[0]!))),
    },
    { name: 'the same with faults', most: 0, measured: differences(faulty, disk[0]!) },
    { name: 'second run: requests for files', most: 0, measured: fileRequests(again.counts) },
  ];
}

export function ingestResults({ remote, disk }: WholeIngests): BenchResult[] {
  const beside = (of: (ingests: Ingest[]) => number[]) =>
    [median(of(remote)), { 'from the disk': median(of(disk)) }] as const;
  return [
    result('ingest of the region: CPU', 's', ...beside(cpuOf)),
    result('ingest of the region: peak memory', 'MB', ...beside(memoryOf)),
  ];
}
