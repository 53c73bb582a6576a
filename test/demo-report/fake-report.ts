/** A report like that of a real run, from a fixed sequence of numbers: 24 places, 4 dates, 12 models. */

import type { DemoReport, ReportModel, ReportTile } from '../../src/demo-report/index.js';
import { geohash } from '../../src/grid/index.js';

export interface FakeOptions {
  columns?: number;
  rows?: number;
  times?: string[];
  models?: number;
  preview?: (column: number, row: number, date: number) => string;
}

const TIMES = [
  '2024-04-18T10:20:31Z',
  '2024-05-13T10:20:31Z',
  '2024-06-12T10:20:31Z',
  '2024-07-07T10:20:31Z',
];
const PRECISION = 5;

export function fakeReport({
  columns = 6,
  rows = 4,
  times = TIMES,
  models = 12,
  preview,
}: FakeOptions = {}): DemoReport {
  const random = sequence(7);
  const { width, height } = geohash.cellSize(PRECISION);
  const tiles: ReportTile[] = [];
  for (let row = 0; row < rows; row++) {
    for (let column = 0; column < columns; column++) {
      const geocode = geohash.encode(13.2 + column * width, 52.6 - row * height, PRECISION);
      const { west, south, east, north } = geohash.bounds(geocode);
      times.forEach((time, date) => {
        const edge = column === 0 || row === rows - 1;
        const coverage = edge ? 20 + 75 * random() : 100;
        const cloudCover = Math.max(
          0,
          Math.min(100, 130 * random() * random() * (date === 1 ? 1.6 : 0.6) - 4),
        );
        const picked = coverage >= 60 && cloudCover <= 20;
        tiles.push({
          id: `sentinel-2-l2a_S2A-20240418-${date}_g${geocode}`,
          geocode,
          scene: `S2A-${date}`,
          time,
          bbox: [west, south, east, north],
          coverage,
          cloudCover,
          picked,
          ...(preview && { preview: preview(column, row, date) }),
        });
      });
    }
  }
  const places = [
    ...new Map(tiles.filter(({ picked }) => picked).map((tile) => [tile.geocode, tile])).values(),
  ];
  const trained = places.slice(0, models).map((tile) => fakeModel(tile, random));
  const matched = tiles.filter(({ picked }) => picked).length;
  const average = (of: (model: ReportModel) => number) =>
    trained.reduce((sum, m) => sum + of(m), 0) / trained.length;
  const pooled = (mse: number) => ({ mse, r2: 1 - mse / 0.041 });
  return {
    title: 'A season of fields north of the river',
    generatedAt: '2024-08-01T09:14:05Z',
    machine: 'AMD EPYC 7B13, 2 cores, 8 GB, Linux 6.1, Node 22.14',
    collection: { id: 'sentinel-2-l2a', grid: 'geohash', precision: PRECISION },
    scenes: times.map((time, i) => ({
      id: `S2A-${time.slice(0, 10).replaceAll('-', '')}T102031-L2A-T33UUU-R065`,
      collection: 'sentinel-2-l2a',
      time,
      platform: i === 3 ? null : 'sentinel-2a',
      bands: ['B02', 'B03', 'B04', 'B08', 'B8A', 'B11', 'SCL'],
      size: '2745 × 2196',
      tiles: tiles.length / times.length,
      warnings: i === 1 ? ['B09 is missing: the scene is cut without it'] : [],
    })),
    tiles,
    query: {
      command:
        'tilewright search --collection sentinel-2-l2a --max-cloud 20 --min-coverage 60 --data tilewright-demo/data',
      description: 'All tiles with at most 20 % cloud and at least 60 % pixel coverage, of any date.',
      matched,
      total: tiles.length,
    },
    training: {
      engine: 'tfjs-node 4.22.0 (oneDNN)',
      seconds: 47.3,
      served: ['chosen on dates or ground that was left out: a network of the place (2)'],
      models: trained,
      skipped: places.slice(models).map(({ geocode }, i) => ({
        geocode,
        reason:
          i % 2 === 0
            ? 'only 31 clear patches of 16 x 16 pixels, 40 are needed'
            : 'no side of the tile has 8 clear patches on a later date for validation',
      })),
      pooled:
        trained.length === 0
          ? null
          : {
              model: pooled(average((m) => m.metrics.validation.mse)),
              linear: pooled(average((m) => m.baseline.linear.mse)),
              mean: pooled(average((m) => m.baseline.mean.mse)),
            },
    },
    next: [
      'tilewright search --max-cloud 5 --data tilewright-demo/data',
      'tilewright train ndvi --epochs 80 --max-cloud 20 --data tilewright-demo/data',
      'tilewright serve --data tilewright-demo/data',
    ],
  };
}

function fakeModel({ geocode, bbox }: ReportTile, random: () => number): ReportModel {
  const normal = () => random() + random() + random() + random() - 2;
  const centre = 0.3 + 0.35 * random();
  const noise = 0.02 + 0.06 * random();
  const truth = Array.from({ length: 24 + Math.floor(40 * random()) }, () =>
    Math.min(0.93, centre + 0.3 * normal()),
  );
  const predicted = truth.map((value) => value + noise * normal() - 0.02);
  const mse = truth.reduce((sum, value, i) => sum + (value - predicted[i]!) ** 2, 0) / truth.length;
  const mean = truth.reduce((sum, value) => sum + value, 0) / truth.length;
  const variance = truth.reduce((sum, value) => sum + (value - mean) ** 2, 0) / truth.length;
  const of = (error: number) => ({ mse: error, r2: 1 - error / variance });
  const fall = (epoch: number, floor: number) =>
    (floor + 0.09 * Math.exp(-epoch / 5)) * (1 + 0.25 * normal());
  return {
    geocode,
    bbox,
    losses: Array.from({ length: 40 }, (_, i) => ({
      epoch: i + 1,
      train: fall(i, mse * 0.7),
      validation: i === 39 ? mse : fall(i, mse),
    })),
    metrics: { train: of(mse * 0.7), validation: of(mse) },
    baseline: { mean: of(variance * 1.05), linear: of(mse * (0.6 + 1.9 * random())) },
    predictions: { truth, predicted },
    patches: { train: truth.length * 3, validation: truth.length },
    seconds: 2 + 3 * random(),
  };
}

/** Numbers in [0, 1), always the same ones (mulberry32). */
function sequence(seed: number): () => number {
  return () => {
    seed = (seed + 0x6d2b79f5) | 0;
    let t = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}
