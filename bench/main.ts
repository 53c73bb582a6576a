/** npm run bench -- NAME [--short] [--threads N] [--rows N] [--format json]: runs a benchmark; without a name, lists them. */
import { parseArgs } from 'node:util';
import { type BenchOptions, type BenchResult, machine } from './support/bench.js';

/** A benchmark is loaded only when it runs. */
const benchmarks: Record<string, () => Promise<(options: BenchOptions) => Promise<BenchResult[]>>> = {
  ingest: async () => (await import('./ingest/ingest.js')).benchIngest,
  archive: async () => (await import('./archive/archive.js')).benchArchive,
  'archive-nodes': async () => (await import('./archive/archive-nodes.js')).benchArchiveNodes,
  fill: async () => (await import('./ingest/fill.js')).benchFill,
  xyz: async () => (await import('./imagery/xyz.js')).benchXyz,
  analysis: async () => (await import('./hyperspectral/analysis.js')).benchAnalysis,
  'analysis-nodes': async () => (await import('./hyperspectral/analysis-nodes.js')).benchAnalysisNodes,
  'spectral-net': async () => (await import('./hyperspectral/spectral-net.js')).benchSpectralNet,
  classifiers: async () => (await import('./hyperspectral/classifiers.js')).benchClassifiers,
  cube: async () => (await import('./ingest/cube.js')).benchCube,
  series: async () => (await import('./imagery/series.js')).benchSeries,
  cloud: async () => (await import('./ingest/cloud.js')).benchCloud,
  query: async () => (await import('./search/query.js')).benchQuery,
  search: async () => (await import('./search/search.js')).benchSearch,
  'start-up': async () => (await import('./search/start-up.js')).benchStartUp,
  placement: async () => (await import('./cluster/placement.js')).benchPlacement,
  engine: async () => (await import('./engine/engine.js')).benchEngine,
  throughput: async () => (await import('./engine/throughput.js')).benchThroughput,
  cluster: async () => (await import('./cluster/cluster.js')).benchCluster,
  training: async () => (await import('./training/training.js')).benchTraining,
  regional: async () => (await import('./regional/regional.js')).benchRegional,
  seams: async () => (await import('./training/seams.js')).benchSeams,
  history: async () => (await import('./training/history.js')).benchHistory,
  freshness: async () => (await import('./training/freshness.js')).benchFreshness,
  texture: async () => (await import('./transfer/texture.js')).benchTexture,
  transfer: async () => (await import('./transfer/transfer.js')).benchTransfer,
  curriculum: async () => (await import('./transfer/curriculum.js')).benchCurriculum,
};

const usage = `npm run bench -- NAME [--short] [--threads N] [--rows N] [--format json]\nnames: ${Object.keys(benchmarks).join(', ')}`;

function wrongUsage(message: string): never {
  console.error(`${message}\n${usage}`);
  process.exit(2);
}

function readArguments() {
  try {
    return parseArgs({
      allowPositionals: true,
      options: {
        short: { type: 'boolean', default: false },
        threads: { type: 'string', default: '1' },
        rows: { type: 'string' },
        format: { type: 'string', default: 'text' },
      },
    });
  } catch (error) {
    return wrongUsage(error instanceof Error ? error.message : String(error));
  }
}

const { values, positionals } = readArguments();
const [name, ...rest] = positionals;
if (name === undefined) {
  console.log(usage);
  process.exit(0);
}
const load = Object.hasOwn(benchmarks, name) ? benchmarks[name] : undefined;
if (!load) wrongUsage(`there is no benchmark ${name}`);
if (rest.length > 0) wrongUsage('one benchmark at a time');
if (values.format !== 'text' && values.format !== 'json') wrongUsage(`there is no format ${values.format}`);

const count = (flag: string, text: string): number => {
  const value = Number(text);
  if (!Number.isInteger(value) || value < 1) wrongUsage(`--${flag} ${text} is not a number of ${flag}`);
  return value;
};
const threads = count('threads', values.threads);
const rows = values.rows === undefined ? undefined : count('rows', values.rows);

// Servers that a benchmark has started are stopped at `exit`.
// A second signal must not interrupt the cleanup.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => process.exit(130));
const run = await load();
const results = await run({ short: values.short, threads, rows, log: (line) => console.error(line) });
if (values.format === 'json') {
  console.log(JSON.stringify({ machine: machine(), results }, null, 2));
} else {
  const { cpu, cores, memoryGB, node } = machine();
  console.log(`${cpu}, ${cores} cores, ${memoryGB} GB, Node ${node}`);
  for (const { name, unit, ours, peers, ratio } of results) {
    const others = Object.entries(peers).map(([peer, value]) => `; ${peer} ${value} (x ${ratio[peer]})`);
    console.log(`${name}: ${ours} ${unit}${others.join('')}`);
  }
}
