/** Tasks of worker threads for maps and series, and their results. */

import type { Program } from '../expressions/index.js';
import type { DataType, PixelArray } from '../raster/index.js';
import type { Level } from './reading/tile-geotiff.js';
import type { RenderedImage, RenderTask } from './rendering/render-image.js';
import type { KernelTask } from './resampling/index.js';
import type { SpectrumPart, SpectrumSums } from './timeseries/zonal-spectra.js';
import type { Acquisition, AcquisitionStatistics } from './timeseries/zonal-statistics.js';

export interface TileStructure {
  dataType: DataType;
  levels: Level[];
  /** A mask says which pixels hold data. */
  masked: boolean;
}

export type ImageryTask =
  | { kind: 'structure'; path: string }
  | { kind: 'block'; path: string; level: number; band: number | 'mask'; block: number }
  | { kind: 'series'; acquisitions: Acquisition[] }
  | { kind: 'spectra'; parts: SpectrumPart[] }
  | { kind: 'resample'; order: KernelTask }
  | { kind: 'evaluate'; programs: Program[]; bands: Float64Array[]; length: number }
  | { kind: 'render'; order: RenderTask };

export type ImageryResult =
  | { kind: 'structure'; structure: TileStructure }
  | { kind: 'block'; pixels: PixelArray }
  | { kind: 'series'; values: AcquisitionStatistics[] }
  | { kind: 'spectra'; sums: SpectrumSums[] }
  | { kind: 'planes'; planes: Float64Array[] }
  | { kind: 'render'; rendered: RenderedImage };
