/** Sends the files of `ingest --upload` to a server. */
import { stat } from 'node:fs/promises';
import type { Client, RunHooks } from '../../client/index.js';
import { TilewrightError } from '../../errors.js';
import type { IngestInputs, IngestResults, SkippedFile } from '../../ingest/index.js';
import type { Timed } from '../../jobs/index.js';
import { outcomeOf } from '../cli-run-job.js';
import { logToStderr } from '../output/index.js';

interface FilesToUpload {
  /** The files of each input; those after the first one are sent beside it. */
  inputs: string[][];
  passedOver: string[];
  skipped: SkippedFile[];
}

/** For a folder, the inputs in it, as for `ingest` without `--upload`. The folder of a product stays one path. */
async function findFilesToUpload(paths: string[], namePattern: string | undefined): Promise<FilesToUpload> {
  const { inputFinder } = await import('../../ingest/index.js');
  const finder = inputFinder(namePattern);
  const files: FilesToUpload = { inputs: [], passedOver: [], skipped: [] };
  for (const path of paths) {
    // A path that does not exist is kept here; `uploadAll` reports it.
    const isFolder = await stat(path).then(
      (info) => info.isDirectory(),
      () => false,
    );
    const found = isFolder || namePattern ? await finder.find(path) : { inputs: [path], passedOver: [] };
    for (const input of found.inputs) files.inputs.push(await finder.filesOf(input));
    files.passedOver.push(...found.passedOver);
    files.skipped.push(...(found.skipped ?? []));
  }
  return files;
}

/** Sends one file after the other. If a file fails, the others are still sent. */
export async function uploadAll(
  client: Client,
  paths: string[],
  options: Partial<IngestInputs>,
  hooks: RunHooks,
): Promise<Timed<IngestResults>> {
  const { sideFilesOf } = await import('../../ingest/index.js');
  const { inputs, passedOver, skipped } = await findFilesToUpload(paths, options.namePattern);
  const all: Timed<IngestResults> = {
    collection: null,
    scenes: [],
    tiles: 0,
    failed: [],
    passedOver,
    skipped,
    seconds: 0,
  };
  for (const [path, ...others] of inputs) {
    try {
      const sideFiles = [...others, ...(await Promise.all([path, ...others].map(sideFilesOf))).flat()];
      logToStderr(`sending ${[path, ...sideFiles].join(', ')}`);
      const { results } = await outcomeOf<IngestResults>(client.upload(path, options, hooks, sideFiles));
      all.collection ??= results.collection;
      all.scenes.push(...results.scenes);
      all.tiles += results.tiles;
      all.failed.push(...results.failed);
      all.passedOver.push(...results.passedOver);
      all.seconds += results.seconds;
    } catch (error) {
      if (hooks.signal?.aborted || !(error instanceof TilewrightError)) throw error;
      all.failed.push({ path, code: error.code, message: error.message });
    }
  }
  return all;
}
