/** PyTorch from PyPI, as a peer. */
import { writeFile } from 'node:fs/promises';
import type { ModelSpec } from '../../src/training/models/spec.js';
import type { TrainValidationPatches } from '../../src/training/patches.js';
import { installPython } from '../support/python.js';

/** The Python that has PyTorch, some gigabytes; undefined if it cannot be installed. */
export const installTorch = (log: (line: string) => void) =>
  installPython('torch', ['torch', 'numpy'], 'torch', log);

/** Writes the patches of a place for torch_ndvi.py: `PATH.json` and `PATH.f32`. `more` is added to the former. */
export async function writeTorchPlace(
  path: string,
  { epochs, batchSize, learningRate }: ModelSpec,
  { train, validation }: Pick<TrainValidationPatches, 'train' | 'validation'>,
  more: object = {},
): Promise<void> {
  const counts = { train: train.count, validation: validation.count };
  await writeFile(`${path}.json`, JSON.stringify({ epochs, batchSize, learningRate, ...counts, ...more }));
  const arrays = [train, validation].flatMap(({ inputs, targets }) => [inputs, targets]);
  await writeFile(
    `${path}.f32`,
    Buffer.concat(
      arrays.map(({ buffer, byteOffset, byteLength }) => Buffer.from(buffer, byteOffset, byteLength)),
    ),
  );
}
