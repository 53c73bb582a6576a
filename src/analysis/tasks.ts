/** What the analysis threads are asked to do. Plain data. */
import type { MadeTile, NewTile } from '../wrangle/index.js';
import type { Components, ComponentsTask } from './pixels/components.js';
import type { Extreme, ExtremesTask } from './pixels/extremes.js';
import type { PixelMethod } from './pixels/methods.js';
import type { Whitening, WhiteningTask } from './pixels/whitening.js';
import type { WholeSums } from './sums/band-statistics.js';
import type { SpectrumFile } from './tile-blocks.js';

/** Sum up the pixels of a tile, or the differences between pixels that are neighbours in a row. */
export interface SumsTask {
  kind: 'sums';
  file: SpectrumFile;
  of: 'pixels' | 'differences';
}

/** Make a tile of what a method computes of the spectrum of each pixel. */
export interface MapTask {
  kind: 'map';
  tile: NewTile;
  file: SpectrumFile;
  method: PixelMethod;
  /** Name of the group of the new tile, and of its bands. */
  group: string;
  bands: string[];
  /** Make also a group of the number, from 1, of the band that is best in each pixel; 0 if it is beyond the threshold. */
  classes?: { best: 'least' | 'most'; threshold?: number };
}

export type AnalysisTask = SumsTask | MapTask | ComponentsTask | WhiteningTask | ExtremesTask;
export type AnalysisResult = WholeSums | MadeTile | Components | Whitening | (Extreme | undefined)[] | null;
