/** What the analysis threads are asked to do. Plain data. */
import type { MadeTile, NewTile } from '../wrangle/index.js';
import type { WholeSums } from './band-statistics.js';
import type { Components, ComponentsTask } from './components.js';
import type { LinearTransform } from './linear-transform.js';
import type { SpectrumFile } from './tile-blocks.js';

/** Sum up the pixels of a tile, or the differences between pixels that are neighbours in a row. */
export interface SumsTask {
  kind: 'sums';
  file: SpectrumFile;
  of: 'pixels' | 'differences';
}

/** Make a tile of a linear transform of the spectrum of each pixel. */
export interface TransformTask {
  kind: 'transform';
  tile: NewTile;
  file: SpectrumFile;
  transform: LinearTransform;
  /** Name of the group of the new tile, and of its bands. */
  group: string;
  bands: string[];
}

export type AnalysisTask = SumsTask | TransformTask | ComponentsTask;
export type AnalysisResult = WholeSums | MadeTile | Components | null;
