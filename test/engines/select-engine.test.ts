/**
 * The order of the engines, with packages that stand in for tfjs-node: real ones need the open network to install. A
 * stand-in is tfjs's own JavaScript backend under the name that tfjs-node's has.
 */
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, beforeEach, describe, it } from 'node:test';
import { selectEngine } from '../../src/engines/select.js';

const { resolve } = createRequire(import.meta.url);
const wasmBackend = createRequire(resolve('@tensorflow/tfjs-backend-wasm'));

const folder = mkdtempSync(join(tmpdir(), 'tilewright-engine-'));
after(() => rmSync(folder, { recursive: true }));
const packagesFrom = join(folder, 'index.js');

function install(name: 'tfjs-node' | 'tfjs-node-gpu', source: string): void {
  const home = join(folder, 'node_modules', '@tensorflow', name);
  mkdirSync(home, { recursive: true });
  writeFileSync(
    join(home, 'package.json'),
    JSON.stringify({ name: `@tensorflow/${name}`, version: '4.22.0', main: 'index.js' }),
  );
  writeFileSync(join(home, 'index.js'), source);
}

/** That of the JavaScript backend divides by all of a window, also by what lies outside of the image. */
const AVERAGE_POOLING = `
  core.unregisterKernel('AvgPoolGrad', 'tensorflow');
  core.registerKernel({ kernelName: 'AvgPoolGrad', backendName: 'tensorflow',
    kernelFunc: ({ inputs: { dy, input }, attrs: { filterSize, strides, pad } }) => {
      const pool = core.backend_util.computePool2DInfo(input.shape, filterSize, strides, 1, pad);
      const gradients = core.buffer(dy.shape, 'float32', core.engine().backend.readSync(dy.dataId));
      const dx = core.buffer(input.shape);
      const inside = (at, stride, before, size, end) =>
        Array.from({ length: size }, (_, i) => at * stride - before + i).filter((one) => one >= 0 && one < end);
      for (let b = 0; b < dy.shape[0]; b++) for (let r = 0; r < dy.shape[1]; r++) for (let c = 0; c < dy.shape[2]; c++) {
        const rows = inside(r, pool.strideHeight, pool.padInfo.top, pool.filterHeight, pool.inHeight);
        const columns = inside(c, pool.strideWidth, pool.padInfo.left, pool.filterWidth, pool.inWidth);
        for (let k = 0; k < dy.shape[3]; k++) for (const y of rows) for (const x of columns)
          dx.set(dx.get(b, y, x, k) + gradients.get(b, r, c, k) / (rows.length * columns.length), b, y, x, k);
      }
      return dx.toTensor();
    } });`;

function engine(options: { gpu: boolean; backend?: string; patch?: string }): string {
  const backend = options.backend ?? 'tensorflow';
  return `
    const core = require(${JSON.stringify(resolve('@tensorflow/tfjs-core'))});
    const layers = require(${JSON.stringify(resolve('@tensorflow/tfjs-layers'))});
    const { MathBackendCPU } = require(${JSON.stringify(wasmBackend.resolve('@tensorflow/tfjs-backend-cpu'))});
    if (${JSON.stringify(backend)} !== 'cpu') {
      core.copyRegisteredKernels('cpu', 'tensorflow');
      core.registerBackend('tensorflow', () => Object.assign(new MathBackendCPU(), { isUsingGpuDevice: ${options.gpu} }));
      ${AVERAGE_POOLING}
    }
    core.setBackend(${JSON.stringify(backend)});
    ${options.patch ?? ''}
    module.exports = { ...core, ...layers, version: { 'tfjs-node': '4.22.0' } };`;
}

/** Passes each gradient of max pooling to every pixel: finite, of the right shape, and wrong. */
const WRONG_GRADIENT = `
  core.unregisterKernel('MaxPoolGrad', 'tensorflow');
  core.registerKernel({ kernelName: 'MaxPoolGrad', backendName: 'tensorflow',
    kernelFunc: ({ inputs: { input } }) => core.onesLike(input) });`;

describe('selectEngine', () => {
  beforeEach(() => rmSync(join(folder, 'node_modules'), { recursive: true, force: true }));

  it('selects the GPU first', async () => {
    install('tfjs-node-gpu', engine({ gpu: true }));
    install('tfjs-node', engine({ gpu: false }));
    assert.deepEqual(await selectEngine({ packagesFrom }), {
      name: 'tfjs-node-gpu',
      version: '4.22.0',
      why: [],
    });
  });

  it('selects WASM, which is faster than tfjs-node, if the GPU package finds no GPU', async () => {
    install('tfjs-node-gpu', engine({ gpu: false }));
    install('tfjs-node', engine({ gpu: false }));
    const selected = await selectEngine({ packagesFrom });
    assert.match(selected.name, /^wasm/);
    assert.deepEqual(selected.why[0], { engine: 'tfjs-node-gpu', reason: 'TensorFlow found no GPU' });
    const { name, why } = await selectEngine({ engine: 'tfjs-node', packagesFrom });
    assert.deepEqual({ name, why }, { name: 'tfjs-node', why: [] });
  });

  it('falls back to WASM, with a reason for each', async () => {
    const selected = await selectEngine({ packagesFrom });
    assert.match(selected.name, /^wasm/);
    const [gpu, ...rest] = selected.why;
    assert.equal(gpu!.engine, 'tfjs-node-gpu');
    assert.match(gpu!.reason, /^Cannot find module/);
    // With the addon where it is built, else without.
    const isPlain = selected.name === 'wasm';
    assert.deepEqual(
      rest.map(({ engine }) => engine),
      isPlain ? ['wasm-onednn'] : [],
    );
  });

  it('skips an engine whose gradients are wrong', async () => {
    install('tfjs-node-gpu', engine({ gpu: true, patch: WRONG_GRADIENT }));
    const selected = await selectEngine({ packagesFrom });
    assert.match(selected.name, /^wasm/);
    assert.match(selected.why[0]!.reason, /^self-test failed/);
  });

  it('skips an engine that averages the gradient over pixels outside of the image', async () => {
    install('tfjs-node-gpu', engine({ gpu: true }).replace(AVERAGE_POOLING, ''));
    const selected = await selectEngine({ packagesFrom });
    assert.match(selected.name, /^wasm/);
    assert.match(selected.why[0]!.reason, /^self-test failed: gradient of bands/);
  });

  it('survives a library that crashes, one that hangs, and one without its binary', async () => {
    install('tfjs-node-gpu', 'process.stderr.write("cannot map libcudart"); process.abort();');
    const crashed = await selectEngine({ packagesFrom });
    assert.match(crashed.name, /^wasm/);
    assert.match(crashed.why[0]!.reason, /SIGABRT/);

    install('tfjs-node-gpu', 'while (true);');
    const hung = await selectEngine({ packagesFrom, timeoutMs: 5000 });
    assert.match(hung.name, /^wasm/);
    assert.match(hung.why[0]!.reason, /did not answer within 5 s/);

    install('tfjs-node-gpu', 'throw new Error("The Node.js native addon module was not found");');
    const other = await selectEngine({ packagesFrom });
    assert.match(other.why[0]!.reason, /native addon module was not found/);
  });

  it('refuses the plain JavaScript backend, even under the name of tfjs-node', async () => {
    install('tfjs-node', engine({ gpu: false, backend: 'cpu' }));
    await assert.rejects(selectEngine({ engine: 'tfjs-node', packagesFrom }), {
      code: 'TW_TRAIN_ENGINE',
      message: /not used for training/,
    });
    await assert.rejects(selectEngine({ engine: 'cpu' }), { code: 'TW_TRAIN_ENGINE', message: /too slow/ });
  });

  it('selects the requested engine, or fails with the reason', async () => {
    install('tfjs-node-gpu', engine({ gpu: true }));
    assert.deepEqual((await selectEngine({ engine: 'wasm', packagesFrom })).why, []);
    await assert.rejects(selectEngine({ engine: 'tfjs-node', packagesFrom }), {
      code: 'TW_TRAIN_ENGINE',
      message: /^training engine tfjs-node cannot be used: Cannot find module/,
    });
    await assert.rejects(selectEngine({ engine: 'torch' }), {
      code: 'TW_TRAIN_ENGINE',
      message: /is not one of/,
    });
  });
});
