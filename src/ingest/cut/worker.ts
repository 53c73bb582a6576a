/** An ingest thread: decodes source rows into shared memory, cuts cells, and makes their files. */
import { handleTasks } from '../../async/index.js';
import { readRowsOfRasters, viewPixels, withGdalSignal } from '../../raster/index.js';
import { classifyCell, detectCloud, findCloudInScene } from '../cloud/detect.js';
import { describeScenes } from '../formats/registry.js';
import { cutCubes } from './cube.js';
import { encodeEmptyFile, encodeFile, encodeMask, replaceLastImage } from './encode.js';
import type { AssessedMask, DecodeTask, DetectCloudTask, IngestResult, IngestTask } from './tasks.js';
import { warpFile } from './warp.js';

handleTasks<IngestTask, IngestResult>(
  async (task, signal) => {
    switch (task.kind) {
      case 'describe':
        return withGdalSignal(signal, () => describeScenes(task.path, task.options, task.files));
      case 'decode':
        return decode(task, signal);
      case 'cut': {
        const pixels = warpFile(task);
        return pixels && encodeFile(task.cells, pixels);
      }
      case 'cube':
        return cutCubes(task);
      case 'blank':
        return encodeEmptyFile(task.cells);
      case 'light':
        await classifyCell(task);
        return null;
      case 'shadow':
        findCloudInScene(task.light, task.sunAzimuth);
        return null;
      case 'assess':
        return assessCloud(task);
    }
  },
  (result) => {
    const bytes = result && 'file' in result ? result.file.bytes : null;
    return bytes ? [bytes.buffer] : [];
  },
);

async function decode(task: DecodeTask, signal: AbortSignal): Promise<null> {
  const rows = task.reads.map(({ buffer, offsets, ...read }) => {
    const { header, rowEnd, firstRow } = read;
    const pixels = (rowEnd - firstRow) * header.width;
    return { ...read, into: offsets.map((offset) => viewPixels(header.dataType, buffer, offset, pixels)) };
  });
  await readRowsOfRasters(rows, signal);
  return null;
}

async function assessCloud(task: DetectCloudTask): Promise<AssessedMask> {
  const { image, ...figures } = encodeMask(task.cell, await detectCloud(task));
  return { ...figures, record: replaceLastImage(task.images.mask!, image, task.mask.file) };
}
