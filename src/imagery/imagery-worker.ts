/** A worker thread: decodes blocks of tile files, reads series and spectra, and runs kernels, expressions, algorithms and colour formulas. */

import { handleTasks } from '../async/index.js';
import { evaluateProgram } from '../expressions/index.js';
import type { PixelArray } from '../raster/index.js';
import type { ImageryResult, ImageryTask } from './imagery-tasks.js';
import { withOpenTile } from './reading/open-tile.js';
import { readBlock, readMaskBlock } from './reading/tile-geotiff.js';
import { renderImage } from './rendering/render-image.js';
import { resampleByKernel } from './resampling/index.js';
import { spectrumSums } from './timeseries/zonal-spectra.js';
import { acquisitionStatistics } from './timeseries/zonal-statistics.js';

handleTasks<ImageryTask, ImageryResult>(
  (task) => {
    switch (task.kind) {
      case 'structure':
        return withOpenTile(task.path, (_, { dataType, levels, masks }) => ({
          kind: 'structure',
          structure: {
            dataType,
            masked: masks.length > 0,
            levels: levels.map(({ width, height, blockWidth, blockHeight }) => ({
              width,
              height,
              blockWidth,
              blockHeight,
            })),
          },
        }));
      case 'block':
        return withOpenTile(task.path, (file, cog) => {
          const { level, band, block } = task;
          const rows = cog.levels[level].blockHeight;
          const pixels =
            band === 'mask'
              ? readMaskBlock(file, cog, { level, block }, rows)
              : // The thread's next block will lie at the same place.
                readBlock(file, cog, { level, band, block }, rows).slice();
          return { kind: 'block', pixels };
        });
      case 'series':
        return { kind: 'series', values: task.acquisitions.map(acquisitionStatistics) };
      case 'spectra':
        return { kind: 'spectra', sums: spectrumSums(task.parts) };
      case 'resample':
        return { kind: 'planes', planes: [resampleByKernel(task.order)] };
      case 'evaluate': {
        const { programs, bands, length } = task;
        return { kind: 'planes', planes: programs.map((program) => evaluateProgram(program, bands, length)) };
      }
      case 'render':
        return { kind: 'render', rendered: renderImage(task.order) };
    }
  },
  (result) => {
    switch (result.kind) {
      case 'block':
        return movable(result.pixels);
      case 'planes':
        return result.planes.flatMap(movable);
      case 'render':
        return movable(result.rendered.pixels);
      default:
        return [];
    }
  },
);

/** Small buffers lie in one that Node shares out, which cannot move to another thread. */
function movable({ buffer, byteLength }: PixelArray | Uint8Array): ArrayBuffer[] {
  return buffer instanceof ArrayBuffer && byteLength >= Buffer.poolSize ? [buffer] : [];
}
