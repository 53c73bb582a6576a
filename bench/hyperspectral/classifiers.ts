/**
 * `classifiers`: how often the interval of a classification covers the score of its classifier on ground that was kept aside. Half
 * of the labelled squares of the EnMAP scene are kept aside, 40 times at random; the others train, and are scored in folds. Every fourth
 * band is read, which takes a tenth of the time.
 */
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { deflateSync, inflateSync } from 'node:zlib';
import { inProcessTransport } from '../../src/cli/connection.js';
import { Client } from '../../src/client/index.js';
import {
  type ClassifierCard,
  type ClassifyResults,
  readLabels,
  type ScoreClassifierResults,
  type StatsResults,
} from '../../src/hyperspectral/index.js';
import { openNode } from '../../src/node.js';
import { createTransform, crsFromEpsg } from '../../src/raster/index.js';
import { randomStream, shuffledOrder } from '../../src/utils/random.js';
import { type BenchOptions, type BenchResult, median, result } from '../support/bench.js';

const DATA = fileURLToPath(new URL('../../../../shared/data/hyperspectral-enmap-potsdam/', import.meta.url));
const DRAWINGS = 40;
const BAND_STEP = 4;
/** Drawings whose score must lie in the interval. */
const WANTED = 0.9;
const filter = { collections: ['enmap'] };

type Labels = Awaited<ReturnType<typeof readLabels>>;

export async function benchClassifiers({ short, log }: BenchOptions): Promise<BenchResult[]> {
  if (!existsSync(DATA)) {
    log(`${DATA} is missing: no figures of it`);
    return [];
  }
  const data = mkdtempSync(join(tmpdir(), 'tilewright-bench-'));
  const node = await openNode({ data, memory: 1e9, cores: 1, reserve: 0, allowFolders: [DATA] });
  const client = new Client(inProcessTransport(node));
  try {
    const paths = [join(DATA, 'enmap-potsdam.hdr')];
    await client.run('ingest', { paths, collection: 'enmap', datetime: '2022-07-24T10:00:00Z' });
    const labels = await readLabels(join(DATA, 'landcover.tif'));
    const stats = await client.run<StatsResults>('analyse-stats', { filter });
    const bands = stats.results.bands.flatMap(({ name }, band) => (band % BAND_STEP === 0 ? [name] : []));
    const classify = async (labels: Labels, seed: number) => {
      const inputs = { filter, labels, classifier: 'lda', seed, bands };
      return (await client.run<ClassifyResults>('analyse-classify', inputs)).results;
    };
    const { model } = await classify(labels, 1);
    const { card } = await client.model<ClassifierCard>(model);
    const of = { covered: 0, coveredOthers: 0, widths: [] as number[], others: [] as number[] };
    const drawings = short ? 4 : DRAWINGS;
    for (let seed = 1; seed <= drawings; seed++) {
      const { next } = randomStream(seed);
      const order = shuffledOrder(card.labelled.at.length, next);
      const aside = new Set(
        [...order.subarray(0, order.length / 2)].map((square) => card.labelled.at[square]!),
      );
      const trained = await classify(
        keptLabels(labels, card, (square) => !aside.has(square)),
        seed,
      );
      const scored = await client.run<ScoreClassifierResults>('score-classifier', {
        model,
        filter,
        labels: keptLabels(labels, card, (square) => aside.has(square)),
      });
      const { oa, squares } = scored.results;
      const [low, high] = trained.oaInterval!;
      // The score of a few other squares varies too, as that of the squares of the interval.
      const wider = Math.sqrt(1 + trained.squares / squares);
      const [from, to] = [trained.oa - wider * (trained.oa - low), trained.oa + wider * (high - trained.oa)];
      of.covered += Number(low <= oa && oa <= high);
      of.coveredOthers += Number(from <= oa && oa <= to);
      of.widths.push(100 * (high - low));
      of.others.push(100 * (Math.min(1, to) - Math.max(0, from)));
      log(
        `drawing ${seed}: ${(100 * trained.oa).toFixed(1)} % (${(100 * low).toFixed(1)} to ${(100 * high).toFixed(1)}; of other squares ${(100 * from).toFixed(1)} to ${(100 * to).toFixed(1)}), kept aside ${(100 * oa).toFixed(1)} %`,
      );
    }
    const wanted = { wanted: WANTED * drawings };
    return [
      result('intervals that cover the score on squares kept aside', `of ${drawings}`, of.covered),
      result('median width of the interval, less is better', 'points', median(of.widths)),
      result(
        'the same with the spread of the squares kept aside',
        `of ${drawings}`,
        of.coveredOthers,
        wanted,
      ),
      result('median width with that spread, less is better', 'points', median(of.others)),
    ];
  } finally {
    await node.close();
    rmSync(data, { recursive: true });
  }
}

/** Leaves only the labels of some squares. */
function keptLabels(labels: Labels, card: ClassifierCard, isKept: (square: string) => boolean): Labels {
  const { epsg, transform, width, codes } = labels.raster!;
  const [x0, xx, xy, y0, yx, yy] = transform as [number, number, number, number, number, number];
  const project = createTransform(crsFromEpsg(epsg), 'EPSG:4326');
  const kept = inflateSync(Buffer.from(codes, 'base64')).map((code, i) => {
    const [column, row] = [(i % width) + 0.5, Math.floor(i / width) + 0.5];
    const [x, y] = project(x0 + xx * column + xy * row, y0 + yx * column + yy * row);
    const [w, h] = card.labelled.size;
    return isKept(`${Math.floor(x / w)} ${Math.floor(y / h)}`) ? code : 0;
  });
  return { ...labels, raster: { ...labels.raster!, codes: deflateSync(kept).toString('base64') } };
}
