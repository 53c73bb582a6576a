/** An ingest thread: decodes source rows into shared memory, cuts cells, and makes their files. */

import { serveTasks } from '../../async/index.js';
import { gridByName } from '../../grid/index.js';
import { endingGdalWith, pixelsOf, readAllRows } from '../../raster/index.js';
import { assessCell } from '../cloud/detect-cloud.js';
import { describeScenes } from '../formats/index.js';
import { sourceProjection } from '../georeferencing/grid-to-source.js';
import { cutCube } from './cut-cube.js';
import { encodeBlank, encodeCell, encodeMask } from './encode-tile.js';
import type {
  AssessTask,
  CutResult,
  CutTask,
  DecodeTask,
  IngestResult,
  IngestTask,
  MaskResult,
} from './ingest-tasks.js';
import { cutGroup } from './warp-group.js';

serveTasks<IngestTask, IngestResult>(
  (task, signal) => {
    switch (task.kind) {
      case 'describe':
        return endingGdalWith(signal, () => describeScenes(task.path, task.options));
      case 'decode':
        return decode(task, signal);
      case 'cut':
        return cut(task);
      case 'cube':
        return cutCube(task);
      case 'blank':
        return encodeBlank(task.cell, task.mask);
      case 'assess':
        return assess(task);
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
    return { ...read, into: offsets.map((offset) => pixelsOf(header.dataType, buffer, offset, pixels)) };
  });
  await readAllRows(rows, signal);
  return null;
}

function cut(task: CutTask): CutResult | null {
  const { epsg } = gridByName(task.cell.grid);
  const pixels = cutGroup(task, (source) => sourceProjection(epsg, source));
  return pixels && encodeCell(task.cell, pixels);
}

async function assess(task: AssessTask): Promise<MaskResult> {
  return encodeMask(task.cell, await assessCell(task));
}
