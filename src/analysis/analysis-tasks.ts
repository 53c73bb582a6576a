/** Tasks of the analysis threads. Plain data. */

import type { MadeTile, NewTile } from '../derive/index.js';
import type { SpectralTags } from '../raster/index.js';
import type { LabelledPatches, PatchesTask } from './convolutional-networks/labelled-patches.js';
import type { GradientSums, GradientTask } from './dense-networks/gradient.js';
import type { LabelledSpectra, SpectraTask } from './dense-networks/labelled-spectra.js';
import type { ScoreSums, ScoreTask } from './dense-networks/score-pixels.js';
import type { LabelSums, LabelSumsTask } from './labels/labelled-pixels.js';
import type { NearestTask } from './passes/nearest-centres.js';
import type { Extreme, ExtremesTask } from './passes/tile-extremes.js';
import type { DrawTask } from './passes/weighted-draw.js';
import type { LocalRx } from './pixel-methods/local-rx.js';
import type { PixelMethod } from './pixel-methods/pixel-methods.js';
import type { FixedPointSums } from './reproducible-sums/band-statistics.js';
import type { FixedPointClassSums } from './reproducible-sums/class-sums.js';
import type { Neighbour } from './tile-reading/neighbour-blocks.js';
import type { SpectrumFile } from './tile-reading/spectrum-blocks.js';
import type { Components, ComponentsTask } from './transforms/pca-mnf.js';
import type { Whitening, WhiteningTask } from './transforms/whitening.js';

/** Sums are over pixels, or over differences between pixels that are neighbours in a row. */
export type SummedQuantity = 'pixels' | 'differences';

/** Sum up a tile. */
export interface SumsTask {
  kind: 'sums';
  file: SpectrumFile;
  of: readonly SummedQuantity[];
}

/** Wavelength and FWHM of a band of a map, nm, and its common name. */
export type MapBandTags = SpectralTags & { commonName?: string };

export interface MapClasses {
  best: 'least' | 'most';
  /** Pixels whose best value is beyond it have code 0. */
  threshold?: number;
  /** Codes and names of the bands. */
  codes: number[];
  names: string[];
}

/** Make a tile of what a method computes of the spectrum of each pixel, or of those around it. */
export interface MapTask<Method = PixelMethod | LocalRx> {
  kind: 'map';
  tile: NewTile;
  file: SpectrumFile;
  method: Method;
  /** Refuses spectra of another scale than those that a classifier was trained on. */
  checksScale?: boolean;
  /** Tiles that windows reach into. */
  around?: Neighbour[];
  /** Name of the group of the new tile, and of its bands. */
  group: string;
  bands: string[];
  /** Tags of the bands, if they are wavelengths. */
  tags?: MapBandTags[];
  /** Path of the file if the bands are a spectrum; the file must not exist. */
  path?: string;
  /** Makes also a group of the code of the band that is best in each pixel. */
  classes?: MapClasses;
}

export type AnalysisTask =
  | SumsTask
  | MapTask
  | ComponentsTask
  | WhiteningTask
  | ExtremesTask
  | DrawTask
  | NearestTask
  | LabelSumsTask
  | SpectraTask
  | GradientTask
  | ScoreTask
  | PatchesTask;
export type AnalysisResult =
  | FixedPointSums[]
  | MadeTile
  | Components
  | Whitening
  | (Extreme | undefined)[]
  | Extreme
  | FixedPointClassSums
  | LabelSums[]
  | LabelledSpectra[][]
  | GradientSums
  | ScoreSums
  | LabelledPatches
  | null;
