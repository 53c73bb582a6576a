/** Two ranks in one process are interrupted, and resume or start from the beginning together. */
import assert from 'node:assert/strict';
import { cp, mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { before, describe, it, type TestContext } from 'node:test';
import { loadEngine } from '../../../src/engines/load.js';
import type { Tf } from '../../../src/engines/tfjs.js';
import { messageOf } from '../../../src/errors.js';
import type { ResumePoint } from '../../../src/training/distributed/checkpoints.js';
import { trainDataParallel } from '../../../src/training/distributed/data-parallel.js';
import { distributedReport } from '../../../src/training/distributed/messages.js';
import { trainingFailed } from '../../../src/training/errors.js';
import { getModelSpec } from '../../../src/training/index.js';
import { labelImages } from '../../../src/training/labelled-images.js';
import { makePatches, type TrainValidationPatches } from '../../../src/training/patches.js';
import { tempFolder } from '../../support/temp.js';
import { field } from '../synthetic-land.js';
import { ringOf } from './process-groups.js';

const EPOCHS = 6;
const spec = { ...getModelSpec('ndvi'), batchSize: 8, minPatches: 6, minValidationPatches: 2 };

function datasetOf(side: number, seed: number): TrainValidationPatches {
  const outcome = makePatches(spec, labelImages(spec, [field(side, side, { seed })]));
  assert.ok('dataset' in outcome, JSON.stringify(outcome));
  return outcome.dataset;
}

interface CutOff {
  /** All members stop after they have written the checkpoint of this epoch. */
  after?: number;
  task?: string;
}

describe('checkpoints of two ranks', () => {
  const datasets = [datasetOf(96, 1), datasetOf(64, 2)];
  let tf: Tf;
  let whole: Awaited<ReturnType<typeof train>>;
  before(async () => {
    ({ tf } = await loadEngine('wasm'));
    whole = await train();
  });

  /** Trains all members. Returns the first epoch of each, and its result unless it was interrupted. */
  async function train(folders?: string[], { after, task = 'a training' }: CutOff = {}) {
    const { rings, links } = await ringOf(2);
    const beginnings: ResumePoint[] = [];
    const member = async (i: number) => {
      const cells = [{ geocode: `u${i}`, tiles: [], dataset: datasets[i]! }];
      const checkpoint = folders && { folder: folders[i]!, task, everySeconds: 0 };
      const { model, trained } = await trainDataParallel(tf, spec, cells, 0, rings[i]!, {
        ...{ seed: 3, epochs: EPOCHS, checkpoint },
        onBegin: (beginning) => void beginnings.push(beginning),
        onEpoch: ({ epoch }) => {
          if (epoch === after) throw trainingFailed('cut off');
        },
      });
      await links[i]!.shutdown();
      const weights = await Promise.all(model.getWeights().map((one) => one.data<'float32'>()));
      model.dispose();
      return { weights, trained };
    };
    const ends = await Promise.allSettled(
      links.map((link, i) =>
        member(i).catch((error) => {
          link.fail(trainingFailed(messageOf(error)));
          throw error;
        }),
      ),
    );
    const members = ends.flatMap((end) => (end.status === 'fulfilled' ? [end.value] : []));
    assert.equal(
      members.length,
      after ? 0 : 2,
      ends.map((end) => end.status === 'rejected' && messageOf(end.reason)).join(),
    );
    return { beginnings, members };
  }

  /** Runs a training that is interrupted. Returns the folders of both members. */
  async function cutOff(t: TestContext, options: CutOff): Promise<string[]> {
    const folder = await tempFolder(t);
    const folders = ['m0', 'm1'].map((name) => join(folder, name));
    for (const own of folders) await mkdir(own);
    await train(folders, options);
    return folders;
  }

  /** The checkpoint files of a member by epoch. */
  async function filesOf(folder: string): Promise<Map<number, string>> {
    const files = new Map<number, string>();
    for (const name of await readdir(folder)) {
      const [head] = (await readFile(join(folder, name), 'latin1')).split('\n', 1);
      files.set(JSON.parse(head!).losses.length, join(folder, name));
    }
    return files;
  }

  async function endsAlike(folders: string[], beginning: ResumePoint): Promise<void> {
    const { beginnings, members } = await train(folders);
    assert.deepEqual(beginnings, [beginning, beginning]);
    for (const [i, { weights, trained }] of members.entries()) {
      assert.deepEqual(weights, whole.members[i]!.weights);
      const { losses, steps, parameters } = whole.members[i]!.trained;
      assert.deepEqual([trained.losses, trained.steps, trained.parameters], [losses, steps, parameters]);
      for (const { ratio } of distributedReport(trained, ['a', 'b'], 2).members)
        assert.ok(ratio! > 1 && ratio! < 1.05, String(ratio));
    }
  }

  it('resume from the last one, to the same weights', async (t) => {
    const folders = await cutOff(t, { after: 3 });
    assert.deepEqual([...(await filesOf(folders[1]!)).keys()].sort(), [2, 3]);
    const tensors = tf.memory().numTensors;
    await endsAlike(folders, { epoch: 3, unlike: false });
    assert.equal(tf.memory().numTensors, tensors);
  });

  it('resume from the previous one if a rank was killed before it wrote the last', async (t) => {
    for (const late of [0, 1]) {
      const folders = await cutOff(t, { after: 3 });
      await rm((await filesOf(folders[late]!)).get(3)!);
      const copies = folders.map((folder) => `${folder}-copy`);
      for (const [i, folder] of folders.entries()) await cp(folder, copies[i]!, { recursive: true });
      await endsAlike(copies, { epoch: 2, unlike: false });
      // The members are interrupted again before the other one writes.
      await train(folders, { after: 3 });
      await rm((await filesOf(folders[1 - late]!)).get(3)!);
      await endsAlike(folders, { epoch: 2, unlike: false });
    }
  });

  it('do not resume from a damaged one', async (t) => {
    const folders = await cutOff(t, { after: 3 });
    const path = (await filesOf(folders[1]!)).get(3)!;
    const bytes = await readFile(path);
    for (const at of [0, bytes.length >> 1]) {
      const damaged = Buffer.from(bytes);
      damaged[at]! ^= 4;
      await writeFile(path, damaged);
      const copies = folders.map((folder) => `${folder}-${at}`);
      for (const [i, folder] of folders.entries()) await cp(folder, copies[i]!, { recursive: true });
      await endsAlike(copies, { epoch: 2, unlike: false });
    }
  });

  it('start from the beginning without a common epoch', async (t) => {
    const folders = await cutOff(t, { after: 4 });
    const others = await cutOff(t, { after: 2 });
    await endsAlike([folders[0]!, others[1]!], { epoch: 0, unlike: true });
  });

  it('start from the beginning if one has those of another training, or none has any', async (t) => {
    const folders = await cutOff(t, { after: 4 });
    const others = await cutOff(t, { after: 4, task: 'another' });
    await endsAlike([folders[0]!, others[1]!], { epoch: 0, unlike: true });
    await endsAlike([others[0]!, folders[1]!], { epoch: 0, unlike: true });
    await endsAlike(await cutOff(t, { after: 4, task: 'another' }), { epoch: 0, unlike: false });
  });
});
