/** A network in an engine: gradients, outputs and class activation maps of patches of pixels. Runs in child processes. */
import type { Tensor, Variable } from '@tensorflow/tfjs-core';
import type { Tf } from '../../engines/index.js';
import { CUBE_BLOCK_SIDE } from '../../raster/index.js';
import { BatchGradients, saveModel } from '../../training/index.js';
import { eachPixelWithNeighbours, type Neighbour, type SpectrumFile } from '../blocks.js';
import type { Standardisation } from '../methods/dense-network.js';
import { type LabelledPatches, loadSpectra } from '../samples.js';
import { buildNet, NET_SETTINGS, type Net, type NetShape, storedNet } from './net.js';

/** Pixels of one batch of the engine. */
export const GROUP = 64;
/** Share of the target that is spread over all classes (label smoothing, Szegedy et al. 2016). */
const LABEL_SMOOTHING = 0.1;

/** Labelled pixels of a tile: at most `GROUP` indexes into `patches`. */
export interface PixelGroup {
  tile: number;
  pixels: Int32Array;
}

/** Patches of a tile with the classes of their pixels, counted from 0. */
export interface NetTile extends Omit<LabelledPatches, 'codes' | 'folds' | 'near' | 'squares'> {
  classes: Uint8Array;
}

/** A kernel or a bias. */
export interface ParameterShape {
  size: number;
  /** Number of values that contribute to one output; 0 for a bias. */
  inputs: number;
}

export interface GroupGradient {
  /** Cross entropy, summed over the pixels. */
  loss: number;
  /** Gradient of the loss, in the order of the weights. */
  gradient: Float32Array;
}

/** Invariant: `net` has the weights of the last `setWeights`. */
export class NetCompute {
  private readonly net: Net;
  private readonly variables: Variable[];
  private readonly gradients: BatchGradients;
  private tiles: NetTile[] = [];

  constructor(
    private readonly tf: Tf,
    private readonly shape: NetShape,
  ) {
    this.net = buildNet(tf, shape);
    this.variables = this.net.layers.flatMap(({ weights }) =>
      weights.map((weight) => weight.read() as Variable),
    );
    const { features, head } = this.net;
    this.gradients = new BatchGradients(tf, this.variables, this.variables, ({ inputs, targets }) => {
      const values = head.apply(features.apply(inputs)) as Tensor;
      return tf.neg(tf.sum(tf.mul(targets, tf.logSoftmax(values))));
    });
  }

  get parameters(): ParameterShape[] {
    return this.net.layers.flatMap((layer) =>
      layer.getWeights().map(({ shape, size }) => {
        // Kernels have rows, columns, inputs and outputs.
        const inputs = shape.length === 1 ? 0 : size / shape.at(-1)!;
        return { size, inputs };
      }),
    );
  }

  holdTiles(tiles: NetTile[]): void {
    this.tiles = tiles;
  }

  setWeights(weights: Float32Array): void {
    let at = 0;
    for (const variable of this.variables) {
      const values = weights.slice(at, at + variable.size);
      at += variable.size;
      this.tf.tidy(() => variable.assign(this.tf.tensor(values, variable.shape)));
    }
  }

  gradientOf(group: PixelGroup): GroupGradient {
    const { tf } = this;
    const inputs = this.inputsOf(group);
    const targets = this.targetsOf(group);
    const found = this.gradients.of({ size: GROUP, inputs: inputs as never, targets });
    const loss = found.value.dataSync()[0];
    const gradient = new Float32Array(this.variables.reduce((sum, { size }) => sum + size, 0));
    let at = 0;
    for (const one of found.gradients) {
      gradient.set(one.dataSync(), at);
      at += one.size;
    }
    tf.dispose([inputs, targets, found.value, ...found.gradients]);
    return { loss, gradient };
  }

  /** Returns one value for each class, pixel by pixel, before softmax. */
  valuesOf(group: PixelGroup): Float32Array {
    const { features, head } = this.net;
    const values = this.tf.tidy(
      () =>
        (head.predict(features.predict(this.inputsOf(group)) as Tensor) as Tensor).dataSync() as Float32Array,
    );
    return values.slice(0, group.pixels.length * this.shape.classes);
  }

  /**
   * Grad-CAM (Selvaraju et al. 2017) of the last convolution, along the bands: its features times the gradient of the margin of the true
   * class over the next best class. The gradient is not averaged over the positions (HiResCAM, Draelos and Carin 2020), because the last
   * layer has a weight for each part of the spectrum. Returns sums over the correctly classified pixels, one row per class.
   */
  camsOf(group: PixelGroup): { pixels: number[]; sums: Float64Array } {
    const { tf, net, shape } = this;
    const { classes } = shape;
    const values = this.valuesOf(group);
    const pixels = new Array<number>(classes).fill(0);
    const signs = new Float32Array(GROUP * classes);
    const right = new Int32Array(GROUP).fill(-1);
    for (const [i, pixel] of group.pixels.entries()) {
      const own = values.subarray(i * classes, (i + 1) * classes);
      const truth = this.tiles[group.tile].classes[pixel];
      const order = [...own.keys()].sort((a, b) => own[b] - own[a] || a - b);
      if (order[0] !== truth) continue;
      right[i] = truth;
      pixels[truth]++;
      signs[i * classes + truth] = 1;
      signs[i * classes + order[1]] = -1;
    }
    const [cams, positions] = tf.tidy(() => {
      const maps = net.features.predict(this.inputsOf(group)) as Tensor;
      const margin = (x: Tensor) =>
        tf.sum(tf.mul(net.head.apply(x) as Tensor, tf.tensor2d(signs, [GROUP, classes])));
      const weighted = tf.relu(tf.sum(tf.mul(maps, tf.grad(margin)(maps)), -1));
      return [tf.mean(weighted, 1).dataSync() as Float32Array, maps.shape[2]!];
    });
    const { bands } = shape;
    const sums = new Float64Array(classes * bands);
    for (const [i, truth] of right.entries()) {
      if (truth < 0) continue;
      const cam = cams.subarray(i * positions, (i + 1) * positions);
      for (let b = 0; b < bands; b++)
        sums[truth * bands + b] += interpolated(cam, ((b + 0.5) * positions) / bands - 0.5);
    }
    return { pixels, sums };
  }

  /** The files of the stored model. */
  async files(standard: Standardisation): Promise<Record<string, Uint8Array>> {
    const { model, layers } = storedNet(this.tf, this.shape, standard);
    for (const [i, layer] of layers.entries()) layer.setWeights(this.net.layers[i].getWeights());
    const files = await saveModel(this.tf, model);
    model.dispose();
    return files;
  }

  private inputsOf({ tile, pixels }: PixelGroup): Tensor {
    const { side } = NET_SETTINGS[this.shape.name];
    const { bands } = this.shape;
    const { spectra, patches } = this.tiles[tile];
    const values = new Float32Array(GROUP * side * side * bands);
    for (const [i, pixel] of pixels.entries())
      for (let p = 0; p < side * side; p++) {
        const number = patches[pixel * side * side + p];
        if (number < 0) continue;
        const at = (i * side * side + p) * bands;
        loadSpectra(spectra, number * bands, values.subarray(at, at + bands));
      }
    return this.tf.tensor(values, side === 1 ? [GROUP, bands] : [GROUP, side, side, bands]);
  }

  /** Pixels that pad a group have no target, so they do not contribute. */
  private targetsOf({ tile, pixels }: PixelGroup): Tensor {
    const { classes } = this.shape;
    const targets = new Float32Array(GROUP * classes);
    for (const [i, pixel] of pixels.entries()) {
      targets.fill(LABEL_SMOOTHING / classes, i * classes, (i + 1) * classes);
      targets[i * classes + this.tiles[tile].classes[pixel]] += 1 - LABEL_SMOOTHING;
    }
    return this.tf.tensor2d(targets, [GROUP, classes]);
  }
}

/** Interpolates linearly between the two values around a position. */
function interpolated(values: Float32Array, position: number): number {
  const at = Math.min(values.length - 1, Math.max(0, position));
  const low = Math.floor(at);
  const high = Math.min(values.length - 1, low + 1);
  return values[low] * (1 - (at - low)) + values[high] * (at - low);
}

/**
 * Visits each pixel of a tile that has a spectrum, with the physical values of the side x side pixels around it, row by row, which are
 * valid until the next call. `missing`: values for pixels without a spectrum. Memory holds the spectra of some rows. Throws
 * TW_IMAGERY_TILE_FILE.
 */
export function eachPatch(
  file: SpectrumFile,
  around: readonly Neighbour[],
  { side, missing }: { side: number; missing: Float32Array },
  visit: (pixel: number, patch: Float32Array) => void,
): void {
  const reach = (side - 1) / 2;
  const bands = missing.length;
  const width = file.width + 2 * reach;
  const patch = new Float32Array(side * side * bands);
  for (let first = 0; first < file.height; first += CUBE_BLOCK_SIDE) {
    const rows = Math.min(CUBE_BLOCK_SIDE, file.height - first);
    // Rows of the widened tile, whose row 0 is `reach` above the tile.
    const wanted = new Uint8Array(width * (file.height + 2 * reach));
    wanted.fill(1, first * width, (first + rows + 2 * reach) * width);
    const spectra = new Map<number, Float32Array>();
    eachPixelWithNeighbours(file, around, { reach, wanted }, (positions, spectrum) => {
      const own = Float32Array.from(spectrum);
      for (const at of positions) spectra.set(at, own);
    });
    for (let row = first; row < first + rows; row++)
      for (let column = 0; column < file.width; column++) {
        if (!spectra.has((row + reach) * width + column + reach)) continue;
        for (let y = 0, at = 0; y < side; y++)
          for (let x = 0; x < side; x++, at += bands)
            patch.set(spectra.get((row + y) * width + column + x) ?? missing, at);
        visit(row * file.width + column, patch);
      }
  }
}
