/** The convolutional networks that classify spectra, and their training settings. */

/** Convolutions along the bands of a pixel, over the pixels around it, and over both; the simplest first. */
export const NETS = ['cnn1d', 'cnn2d', 'resnet3d'] as const;
export type NetName = (typeof NETS)[number];

export const isNet = (name: string): name is NetName => (NETS as readonly string[]).includes(name);

export interface NetSettings {
  /** Side of the square of input pixels around the classified pixel; an odd number. */
  side: number;
  /** Default number of passes over the labelled pixels. */
  epochs: number;
  /** The largest step of Adam. */
  rate: number;
}

export const NET_SETTINGS: Record<NetName, NetSettings> = {
  cnn1d: { side: 1, epochs: 30, rate: 3e-3 },
  cnn2d: { side: 5, epochs: 20, rate: 2e-3 },
  resnet3d: { side: 5, epochs: 12, rate: 3e-3 },
};

/** Side of the square of input pixels of a classifier; 1 if it reads single pixels. */
export const patchSide = (classifier: string): number =>
  isNet(classifier) ? NET_SETTINGS[classifier].side : 1;

/** The shape of a network. Plain data. */
export interface NetShape {
  name: NetName;
  bands: number;
  classes: number;
}

/** Computes the probability of each class by a stored network. Plain data. */
export interface NetMethod {
  kind: 'net';
  side: number;
  classes: number;
  /** `model.json` and `weights.bin`. */
  files: Record<string, Uint8Array>;
}

export function netMethod(name: NetName, classes: number, files: Record<string, Uint8Array>): NetMethod {
  return { kind: 'net', side: NET_SETTINGS[name].side, classes, files };
}
