import { NET_SETTINGS, type NetName } from './spectral-cnn-specs.js';

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
