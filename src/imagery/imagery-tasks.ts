/** Tasks of worker threads for maps and series, and their results. */

import type { Program } from '../expressions/index.js';
import type { DataType, PixelArray } from '../raster/index.js';
import type { Level } from './reading/tile-geotiff.js';
import type { Rendered, RenderOrder } from './rendering/render-image.js';
import type { KernelOrder } from './resampling/index.js';
import type { SpectrumPart, SpectrumSums } from './timeseries/zonal-spectra.js';
import type { Acquisition, AcquisitionValues } from './timeseries/zonal-statistics.js';

export interface Structure {
  dataType: DataType;
  levels: Level[];
  /** A mask says which pixels hold data. */
  masked: boolean;
}

export type Task =
  | { kind: 'structure'; path: string }
  | { kind: 'block'; path: string; level: number; band: number | 'mask'; block: number }
  | { kind: 'series'; acquisitions: Acquisition[] }
  | { kind: 'spectra'; parts: SpectrumPart[] }
  | { kind: 'resample'; order: KernelOrder }
  | { kind: 'evaluate'; programs: Program[]; bands: Float64Array[]; length: number }
  | { kind: 'render'; order: RenderOrder };

export type Result =
  | { kind: 'structure'; structure: Structure }
  | { kind: 'block'; pixels: PixelArray }
  | { kind: 'series'; values: AcquisitionValues[] }
  | { kind: 'spectra'; sums: SpectrumSums[] }
  | { kind: 'planes'; planes: Float64Array[] }
  | { kind: 'render'; rendered: Rendered };
