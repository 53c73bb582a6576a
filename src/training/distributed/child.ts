/** The process of a node in a distributed training: reads the node's places, then trains with the others. Started by member-process.ts. */
import { Socket } from 'node:net';
import { messageOf, sentError, TilewrightError } from '../../errors.js';
import { type EngineName, loadEngine } from '../engine/load-engine.js';
import { trainingFailed } from '../errors.js';
import { imagesOf } from '../images.js';
import { modelNamed } from '../models/index.js';
import { cutPatches } from '../patches.js';
import { readPlace } from '../read-place.js';
import { saveModel } from '../weights.js';
import { alone } from './all-reduce.js';
import { RingLinks } from './links.js';
import {
  type FromMember,
  type MemberData,
  type MemberTask,
  type MemberTraining,
  NEXT,
  PREVIOUS,
  type ToMember,
} from './messages.js';
import { type PlacePatches, trainTogether } from './train-together.js';

const [engine] = process.argv.slice(2);
let model = '';
let bytesRead = 0;
const places: PlacePatches[] = [];

process.on('message', async (message: ToMember) => {
  try {
    if ('read' in message) await say({ data: await read(message.read) });
    else await train(message.train);
  } catch (error) {
    await say({ error: sentError(known(error)) });
  }
});
process.on('disconnect', () => process.exit());

async function read(task: MemberTask): Promise<MemberData> {
  const spec = modelNamed(task.model);
  model = task.model;
  const skipped: MemberData['skipped'] = [];
  const failed: MemberData['failed'] = [];
  const usable: string[] = [];
  for (const { id, geocode, tiles, dates, pairs } of task.places) {
    try {
      const pixels = await readPlace(dates);
      const patches = 'skipped' in pixels ? pixels : cutPatches(spec, imagesOf(spec, pixels.dates, pairs));
      if ('skipped' in patches) skipped.push({ id, reason: patches.skipped });
      else {
        usable.push(id);
        places.push({ geocode, tiles, dataset: patches.dataset });
      }
      if (!('skipped' in pixels)) bytesRead += pixels.bytesRead;
    } catch (error) {
      const { code, message } = known(error);
      failed.push({ id, code, message });
    }
  }
  const patches = places.reduce((sum, { dataset }) => sum + dataset.train.count, 0);
  return { usable, patches, skipped, failed };
}

async function train({ index, members, seed, epochs }: MemberTraining): Promise<void> {
  const { tf } = await loadEngine(engine as EngineName);
  const stream = (fd: number) => new Socket({ fd, readable: true, writable: true });
  const links =
    members.length > 1 ? new RingLinks({ index, members }, stream(PREVIOUS), stream(NEXT)) : undefined;
  try {
    const { model: made, trained } = await trainTogether(
      tf,
      modelNamed(model),
      places,
      bytesRead,
      links ?? alone,
      {
        seed,
        epochs,
        onEpoch: (epoch) => say({ epoch }),
      },
    );
    await links?.leave();
    const files = index === 0 ? { files: await saveModel(tf, made) } : {};
    made.dispose();
    await say({ trained: { ...trained, ...files } });
  } catch (error) {
    links?.fail(known(error));
    throw error;
  }
}

function known(error: unknown): TilewrightError {
  return error instanceof TilewrightError ? error : trainingFailed.because(error, messageOf(error));
}

/** Resolves when the message is out, so that a busy process does not hold its news back until it is done. */
function say(message: FromMember): Promise<void> {
  return new Promise((resolve) => {
    process.send?.(message, () => resolve());
  });
}
