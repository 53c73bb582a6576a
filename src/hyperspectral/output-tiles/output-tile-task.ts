import type { NewTile } from '../../derive/index.js';
import type { LocalRx, PixelMethod } from '../pixel-methods/index.js';
import type { MapBandTags } from '../spectra/index.js';
import type { Neighbour, SpectrumFile } from '../spectrum-reading/index.js';

export interface MapClasses {
  best: 'least' | 'most';
  /** Pixels whose best value is beyond it have code 0. */
  threshold?: number;
  /** Codes and names of the bands. */
  codes: number[];
  names: string[];
}

/** Makes a tile of the values that a method computes from the spectrum of each pixel, or of the pixels around it. Plain data. */
export interface MapTask<Method = PixelMethod | LocalRx> {
  kind: 'map';
  tile: NewTile;
  file: SpectrumFile;
  method: Method;
  /** If set, spectra of another scale than those that trained the classifier are refused. */
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
  /** If set, the tile also gets a group with the code of the best band of each pixel. */
  classes?: MapClasses;
}
