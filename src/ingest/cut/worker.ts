/** An ingest thread: decodes source rows into shared memory, cuts cells, and makes their files. */
import { handleTasks } from '../../async/index.js';
import { readRowsOfRasters, viewPixels, withGdalSignal } from '../../raster/index.js';
import { classifyCell, detectCloud, findCloudInScene } from '../cloud/detect.js';
import { describeScenes } from '../formats/registry.js';
import { cutCube } from './cube.js';
import { encodeEmptyTile, encodeMaskFile, encodeTile } from './encode.js';
import type { DecodeTask, IngestResult, IngestTask } from './tasks.js';
import { warpGroup } from './warp.js';

handleTasks<IngestTask, IngestResult>(
  async (task, signal) => {
    switch (task.kind) {
      case 'describe':
        return withGdalSignal(signal, () => describeScenes(task.path, task.options, task.files));
      case 'decode':
        return decode(task, signal);
      case 'cut': {
        const pixels = warpGroup(task);
        return pixels && encodeTile(task.cell, pixels);
      }
      case 'cube':
        return cutCube(task);
      case 'blank':
        return encodeEmptyTile(task.cell);
      case 'light':
        await classifyCell(task);
        return null;
      case 'shadow':
        findCloudInScene(task.light, task.sunAzimuth);
        return null;
      case 'assess':
        return encodeMaskFile(task.cell, await detectCloud(task));
    }
  },
  (result) => {
    const own = result && 'file' in result ? result.file : undefined;
    const files = [own, result && 'mask' in result ? result.mask?.file : undefined];
    return files.flatMap((file) => (file ? [file.bytes.buffer] : []));
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
