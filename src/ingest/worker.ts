/** An ingest thread: decodes source rows into shared memory, cuts cells, and writes their files. */
import { gridByName } from '../geocode/index.js';
import { type Projection, pixelsOf, projector, readRows, serveTasks } from '../raster/index.js';
import { writeBlank, writeCell } from './cell-files.js';
import { cutGroup, type ProjectionOf } from './cut.js';
import type { DecodeTask } from './row-window.js';
import type { CellGroup, CutResult, CutTask, IngestTask } from './tasks.js';

serveTasks<IngestTask, CutResult | null>((task, signal) => {
  switch (task.kind) {
    case 'decode':
      return decode(task, signal);
    case 'cut':
      return cut(task);
    case 'blank':
      return writeBlank(task.cell, task.mask);
  }
});

async function decode(task: DecodeTask, _signal: AbortSignal): Promise<null> {
  const { header, bands, rowStart, rowEnd, buffer, offsets, firstRow } = task;
  const pixels = (rowEnd - firstRow) * header.width;
  const arrays = offsets.map((offset) => pixelsOf(header.dataType, buffer, offset, pixels));
  await readRows(header, bands, rowStart, rowEnd, arrays, firstRow);
  return null;
}

function cut(task: CutTask): CutResult | null {
  const pixels = cutGroup(task, projectionsFor(task.cell));
  return pixels && writeCell(task.cell, pixels);
}

const projections = new Map<string, Projection>();

/** Projections are costly to make and few. */
function projectionsFor({ grid }: CellGroup): ProjectionOf {
  const { epsg } = gridByName(grid);
  return ({ crs }) => {
    const key = `${epsg} ${crs.proj4}`;
    const projection = projections.get(key) ?? projector(`EPSG:${epsg}`, crs);
    projections.set(key, projection);
    return projection;
  };
}
