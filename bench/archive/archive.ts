/**
 * `archive`: reads a region of a remote Item, beside programs from PyPI and beside an ingest of the same files on the disk. The server is
 * on this machine, with latency. Less is better.
 */
import { type BenchOptions, type BenchResult, isInstalled } from '../support/bench.js';
import { startArchiveServer } from './archive-server.js';
import {
  fetchResults,
  installPeers,
  measureFetches,
  requestMarks,
  requestTable,
  timeTable,
  wallMarks,
} from './fetches.js';
import { isReached, markTable } from './figures.js';
import { itemFiles } from './item-files.js';
import { regionOf } from './region.js';
import { faultTable, ingestMarks, ingestResults, ingestTable, measureIngests } from './whole-ingests.js';

export async function benchArchive({ short, log }: BenchOptions): Promise<BenchResult[]> {
  if (!isInstalled('gdal_translate')) {
    log('GDAL is not installed: no figures, because it makes the files');
    return [];
  }
  const rounds = short ? { fetch: 3, ingest: 3 } : { fetch: 9, ingest: 5 };
  const files = itemFiles(short ? 2196 : 10_980, log);
  const side = short ? 3 : 7;
  const [oneCell, region] = [regionOf(files, 1), regionOf(files, side)];
  const peers = installPeers(log);
  const server = await startArchiveServer(files);
  try {
    const cell = await measureFetches(server, peers, oneCell, rounds.fetch);
    const cells = await measureFetches(server, peers, region, rounds.fetch);
    const title = `region of ${side * side} cells`;
    log(`\n${requestTable('one cell', cell)}\n\n${requestTable(title, cells)}`);
    log(`\n${timeTable('one cell', cell)}\n\n${timeTable(title, cells)}`);
    const ingests = await measureIngests(server, files, region, rounds.ingest);
    log(`\n${ingestTable(ingests)}\n\n${faultTable(ingests)}`);
    log(
      `\nthe digests of the files on the disk take ${ingests.digestSeconds.toFixed(2)} CPU s of its ingest`,
    );
    const marks = [
      ...requestMarks(cell, cells),
      ...wallMarks('one cell', cell),
      ...wallMarks('region', cells),
      ...ingestMarks(ingests),
    ];
    log(`\n${markTable(marks)}\n\n${marks.filter(isReached).length} of ${marks.length} marks are reached\n`);
    return [...fetchResults('one cell', cell), ...fetchResults(title, cells), ...ingestResults(ingests)];
  } finally {
    server.stop();
  }
}
