/**
 * `analysis`: covariance and components, detectors and abundances of a cube of 512 x 512 pixels and 200 bands of int16, compared with
 * NumPy, Spectral Python and SciPy, with one thread each. tilewright reads the tile file; the peers have their array in memory. The cube
 * is synthetic: mixtures of ten smooth spectra with noise of 35 dB.
 */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { npyHead } from '../../src/derive/index.js';
import { eachBlock, type SpectrumFile } from '../../src/hyperspectral/blocks.js';
import { pcaOrMnf } from '../../src/hyperspectral/components.js';
import { whitening } from '../../src/hyperspectral/linear-algebra.js';
import { type PixelMethod, pixelFunction } from '../../src/hyperspectral/methods/methods.js';
import { PANEL_PIXELS } from '../../src/hyperspectral/methods/panel.js';
import { bandStatistics, ExactSums, tileSums } from '../../src/hyperspectral/sums.js';
import { encodeCube } from '../../src/raster/index.js';
import { randomStream } from '../../src/utils/random.js';
import { type BenchOptions, type BenchResult, median, result, spend } from '../support/bench.js';
import { installPython } from '../support/python.js';

const PEER = fileURLToPath(new URL('../../../bench/hyperspectral/analysis.py', import.meta.url));
const BANDS = 200;
const TARGETS = 20;
const ENDMEMBERS = 10;
const SCALE = 1e-4;

interface Task {
  name: string;
  ours: () => void;
  /** Names of the peers in the program, and their display names. */
  peers: Record<string, string>;
}

export async function benchAnalysis({ short, log }: BenchOptions): Promise<BenchResult[]> {
  const side = short ? 128 : 512;
  const folder = mkdtempSync(join(tmpdir(), 'tilewright-bench-'));
  try {
    const { file, targets } = store(folder, side);
    const python = installPython('analysis', ['spectral==0.25', 'scipy', 'numpy'], 'spectral, scipy', log);
    const tasks = tasksOf(file, targets);
    const times = new Map<string, number[]>();
    const add = (name: string, ms: number) => times.set(name, [...(times.get(name) ?? []), ms]);
    for (let round = 0; round < (short ? 1 : 5); round++)
      for (const { name, ours, peers } of tasks) {
        ours();
        add(name, (await spend(async () => ours())).cpuSeconds * 1e3);
        if (!python) continue;
        for (const peer of Object.keys(peers)) add(`${name} ${peer}`, peerTime(python, folder, peer));
        log(`round ${round + 1}, ${name}: ${times.get(name)!.at(-1)!.toFixed(0)} ms`);
      }
    return tasks.map(({ name, peers }) => {
      const of = (key: string) => median(times.get(key)!);
      const known = Object.entries(peers).filter(([peer]) => times.has(`${name} ${peer}`));
      const theirs = Object.fromEntries(known.map(([peer, title]) => [title, of(`${name} ${peer}`)]));
      return result(`${name}, less is better`, 'CPU ms', of(name), theirs);
    });
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function tasksOf(file: SpectrumFile, targets: Float64Array): Task[] {
  const sums = () => {
    const total = new ExactSums(BANDS);
    for (const sums of tileSums({ file, of: ['pixels'] })) total.add(sums);
    return bandStatistics(total.moments(file.scales, file.offsets));
  };
  const { mean, covariance, pixels } = sums();
  const white = whitening({ covariance, pixels }).whitening;
  const whitened = Float64Array.from(targets, (_, at) => {
    const [row, band] = [Math.floor(at / BANDS), at % BANDS];
    let sum = 0;
    for (let k = 0; k <= band; k++) sum += white[band * BANDS + k]! * (targets[row * BANDS + k]! - mean[k]!);
    return sum;
  });
  const every = (method: PixelMethod) => {
    const { evaluate } = pixelFunction(method, file);
    eachBlock(file, ({ bands, indexes }) => {
      for (let from = 0; from < indexes.length; from += PANEL_PIXELS) evaluate(bands, indexes, from);
    });
  };
  return [
    {
      name: 'covariance and 10 principal components',
      ours: () => pcaOrMnf({ covariance: sums().covariance, count: 10 }),
      peers: { 'numpy-pca': 'np.cov and eigh, float32', 'spy-pca': 'Spectral Python' },
    },
    {
      name: `spectral angles to ${TARGETS} targets`,
      ours: () => every({ kind: 'angle', targets }),
      peers: { 'spy-sam': 'Spectral Python', 'numpy-sam': 'NumPy, float32' },
    },
    {
      name: `ACE of ${TARGETS} targets`,
      ours: () => every({ kind: 'coherence', whitening: white, centre: mean, targets: whitened }),
      peers: { 'spy-ace': 'Spectral Python', 'numpy-ace': 'NumPy, float32' },
    },
    {
      name: 'RX',
      ours: () => every({ kind: 'distance', whitening: white, centre: mean }),
      peers: { 'spy-rx': 'Spectral Python', 'numpy-rx': 'NumPy, float32' },
    },
    {
      name: `fully constrained abundances of ${ENDMEMBERS} endmembers`,
      ours: () =>
        every({
          ...{ kind: 'abundances', count: ENDMEMBERS, sumsToOne: true },
          endmembers: targets.slice(0, ENDMEMBERS * BANDS),
        }),
      peers: { 'scipy-fcls': 'scipy.optimize.nnls in a loop' },
    },
  ];
}

/** Writes the cube as a tile file, and as arrays for the peers. */
function store(folder: string, side: number): { file: SpectrumFile; targets: Float64Array } {
  const { next } = randomStream(1);
  const normal = () => Math.sqrt(-2 * Math.log(1 - next())) * Math.cos(2 * Math.PI * next());
  const spectra = Array.from({ length: TARGETS }, () => {
    const waves = Array.from({ length: 6 }, (_, k) => ({
      size: 0.06 * normal(),
      turn: 0.012 * (k + 1) * (0.5 + next()),
      phase: 6 * next(),
    }));
    return Array.from({ length: BANDS }, (_, b) =>
      Math.max(
        0.02,
        waves.reduce((sum, { size, turn, phase }) => sum + size * Math.cos(turn * b + phase), 0.35),
      ),
    );
  });
  const count = side * side;
  const bands = Array.from({ length: BANDS }, () => new Int16Array(count));
  for (let i = 0; i < count; i++) {
    const raw = Array.from({ length: ENDMEMBERS }, () => (next() < 0.5 ? 0 : next()));
    raw[i % ENDMEMBERS]! += 0.3;
    const total = raw.reduce((sum, value) => sum + value, 0);
    for (let b = 0; b < BANDS; b++) {
      let value = 0;
      for (let k = 0; k < ENDMEMBERS; k++) value += (raw[k]! / total) * spectra[k]![b]!;
      bands[b]![i] = Math.round((value + 0.006 * normal()) / SCALE);
    }
  }
  const targets = Float64Array.from(spectra.flat());
  const transform = { originX: 13, originY: 52.5, pixelWidth: 0.0003, pixelHeight: 0.0003 };
  const image = {
    width: side,
    height: side,
    dataType: 'int16',
    nodata: -32_768,
    epsg: 4326,
    transform,
  } as const;
  const path = join(folder, 'cube.tif');
  const bytes = encodeCube({ ...image, isCompressed: false }, bands);
  writeFileSync(path, bytes);
  const pixels = new Int16Array(count * BANDS);
  for (const [b, band] of bands.entries()) for (let i = 0; i < count; i++) pixels[i * BANDS + b] = band[i]!;
  writeFileSync(
    join(folder, 'pixels.npy'),
    Buffer.concat([npyHead('int16', [side, side, BANDS]), new Uint8Array(pixels.buffer)]),
  );
  writeFileSync(
    join(folder, 'targets.npy'),
    Buffer.concat([npyHead('float64', [TARGETS, BANDS]), new Uint8Array(targets.buffer)]),
  );
  const each = Array.from({ length: BANDS }, (_, band) => band);
  const file: SpectrumFile = {
    ...{
      path,
      start: 0,
      bytes: bytes.length,
      width: side,
      height: side,
      dataType: 'int16',
      nodata: -32_768,
      mask: undefined,
    },
    ...{ bands: each, scales: each.map(() => SCALE), offsets: each.map(() => 0) },
  };
  return { file, targets };
}

/** CPU milliseconds. */
function peerTime(python: string, folder: string, task: string): number {
  const env = { ...process.env, OPENBLAS_NUM_THREADS: '1', OMP_NUM_THREADS: '1' };
  const { status, stdout, stderr } = spawnSync(python, [PEER, folder, task], { env, encoding: 'utf8' });
  if (status !== 0) throw new Error(stderr);
  return Number(stdout);
}
