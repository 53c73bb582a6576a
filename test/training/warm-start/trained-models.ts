/** Trained models and models with known weights, as files that other trainings start from. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { crc32 } from 'node:zlib';
import type { LayersModel } from '@tensorflow/tfjs-layers';
import type { Tf } from '../../../src/engines/tfjs.js';
import type { ModelFileLocation } from '../../../src/storage/index.js';
import { getModelSpec } from '../../../src/training/index.js';
import { labelImages } from '../../../src/training/labelled-images.js';
import { inputPlanes, type ModelSpec } from '../../../src/training/models/spec.js';
import { type ModelFiles, parseWeights, saveModel } from '../../../src/training/models/weights.js';
import { makePatches, type TrainValidationPatches } from '../../../src/training/patches.js';
import { type TrainOptions, trainModel } from '../../../src/training/training-loop.js';
import type { SourceModelFiles } from '../../../src/training/warm-start.js';
import { tempFolder } from '../../support/temp.js';
import { clouded, field } from '../synthetic-land.js';

export const ndvi = getModelSpec('ndvi');
export const ndmi = getModelSpec('ndmi');

export function datasetOf(
  spec: ModelSpec,
  seed: number,
  side = spec.patchSize > 16 ? 340 : 150,
): TrainValidationPatches {
  const clear = field(side, side, { seed });
  const isPair = spec.target.kind === 'clear';
  const dates = isPair ? [clouded(clear), clear] : [clear];
  const least = { ...spec, minPatches: Math.min(8, spec.minPatches) };
  const outcome = makePatches(
    least,
    labelImages(spec, dates, isPair ? [{ cloudy: 0, clear: 1 }] : undefined),
  );
  assert.ok('dataset' in outcome, JSON.stringify(outcome));
  return outcome.dataset;
}

export async function parentIn(t: TestContext, files: ModelFiles, id = 'parent'): Promise<SourceModelFiles> {
  const folder = await tempFolder(t);
  const writeFile = (name: keyof ModelFiles): ModelFileLocation => {
    const bytes = files[name]!;
    const path = join(folder, String(name));
    writeFileSync(path, bytes);
    const file = { name: String(name), bytes: bytes.length, crc32: crc32(bytes) };
    return { path, file, model: { id, version: 'v1' } };
  };
  return { id, version: 'v1', topology: writeFile('model.json'), weights: writeFile('weights.bin') };
}

export async function trainAndSave(
  tf: Tf,
  spec: ModelSpec,
  dataset: TrainValidationPatches,
  options: Partial<TrainOptions> = {},
): Promise<Omit<Awaited<ReturnType<typeof trainModel>>, 'model'> & { files: ModelFiles }> {
  const { model, ...rest } = await trainModel(tf, spec, dataset, { seed: 1, epochs: 2, ...options });
  const files = await saveModel(tf, model);
  model.dispose();
  return { files, ...rest };
}

export const valuesOf = (model: LayersModel) =>
  new Map(model.weights.map((weight) => [weight.originalName, weight.read().dataSync<'float32'>()]));

/** The weights by name. */
export const weightsIn = (files: ModelFiles) => {
  const { weightsManifest } = JSON.parse(Buffer.from(files['model.json']).toString());
  const names: string[] = weightsManifest[0].weights.map(({ name }: { name: string }) => name);
  const values = parseWeights(files['model.json'], files['weights.bin']);
  return new Map(names.map((weight, i) => [weight, values[i]!.values]));
};

/** A line that is not zero, so that all weights get gradients. */
export function line(spec: ModelSpec) {
  const { inputs, target } = spec;
  const outputs = target.kind === 'clear' ? inputs.length : 1;
  const row = Array.from({ length: inputPlanes(spec) }, (_, i) => 0.1 * (i + 1));
  return {
    weights: Array.from({ length: outputs }, () => row),
    bias: Array.from({ length: outputs }, () => 0.1),
  };
}
