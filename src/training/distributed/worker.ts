/** The process of a rank: reads the cells of its node, then trains with the other ranks. Started by distributed-mode.ts. */
import { Socket } from 'node:net';
import { type EngineName, loadEngine, serveRequests } from '../../engines/index.js';
import { messageOf, TilewrightError } from '../../errors.js';
import { trainingFailed } from '../errors.js';
import { getModelSpec } from '../models/builtin.js';
import { saveModel } from '../models/weights.js';
import { readCellDataset } from '../train-task.js';
import { type CellPatches, trainDataParallel } from './data-parallel.js';
import {
  NEXT_RANK_FD,
  PREVIOUS_RANK_FD,
  type RankHandlers,
  type ReadCellsRequest,
  type ReadCellsResult,
} from './messages.js';
import { allGather, RingConnection, SINGLE_PROCESS_GROUP } from './ring.js';

const [engine] = process.argv.slice(2);
let model = '';
let bytesRead = 0;
const cells: CellPatches[] = [];
/** Undefined for a single rank. */
let connection: RingConnection | undefined;

async function read(task: ReadCellsRequest): Promise<ReadCellsResult> {
  const spec = getModelSpec(task.model);
  model = task.model;
  const skipped: ReadCellsResult['skipped'] = [];
  const failed: ReadCellsResult['failed'] = [];
  const usable: string[] = [];
  for (const { id, geocode, tiles, ...files } of task.places) {
    try {
      const data = await readCellDataset(spec, files);
      bytesRead += data.bytesRead;
      if ('skipped' in data) skipped.push({ id, reason: data.skipped });
      else {
        usable.push(id);
        cells.push({ geocode, tiles, dataset: data.dataset, source: data.source });
      }
    } catch (error) {
      const { code, message } = toKnownError(error);
      failed.push({ id, code, message });
    }
  }
  const patches = cells.reduce((sum, { dataset }) => sum + dataset.train.count, 0);
  return { usable, patches, skipped, failed };
}

const train: RankHandlers['train'] = async (
  { index, members, seed, epochs, patience, checkpoint, returnsFiles },
  report,
) => {
  const { tf } = await loadEngine(engine as EngineName);
  const stream = (fd: number) => new Socket({ fd, readable: true, writable: true });
  if (members.length > 1)
    connection = new RingConnection({ index, members }, stream(PREVIOUS_RANK_FD), stream(NEXT_RANK_FD));
  const spec = getModelSpec(model);
  const { model: network, trained } = await trainDataParallel(
    tf,
    spec,
    cells,
    bytesRead,
    connection ?? SINGLE_PROCESS_GROUP,
    {
      seed,
      epochs,
      patience,
      checkpoint,
      onBegin: (begins) => report({ begins }),
      onEpoch: (epoch) => report({ epoch }),
    },
  );
  const files = index === 0 || returnsFiles ? { files: await saveModel(tf, network) } : {};
  network.dispose();
  return { ...trained, ...files };
};

async function leave(): Promise<void> {
  // No rank leaves, and removes its checkpoints, before the first rank has stored the model.
  await allGather(connection ?? SINGLE_PROCESS_GROUP, null);
  await connection?.shutdown();
}

function toKnownError(error: unknown): TilewrightError {
  return error instanceof TilewrightError ? error : trainingFailed.because(error, messageOf(error));
}

/** Sends the error to the other ranks if the handler fails. */
function reportingFailure<Args extends unknown[], Result>(handler: (...args: Args) => Promise<Result>) {
  return async (...args: Args): Promise<Result> => {
    try {
      return await handler(...args);
    } catch (error) {
      connection?.fail(toKnownError(error));
      throw error;
    }
  };
}

serveRequests<RankHandlers>(
  { read, train: reportingFailure(train), leave: reportingFailure(leave) },
  trainingFailed,
);
