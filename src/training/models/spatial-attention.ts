/** Spatial attention of SpA-GAN: an attention map that locates cloud from four directions. */
import type { SymbolicTensor } from '@tensorflow/tfjs-layers';
import { apply, type LayerBuilder } from './model-layer-builder.js';

type Pairs = [rows: [number, number], columns: [number, number]];

/** For each direction, the rows and columns to pad and to crop, so that each pixel is shifted onto its neighbour. */
const DIRECTIONS: { pad: Pairs; crop: Pairs }[] = [
  { pad: [[1, 0], [0, 0]], crop: [[0, 1], [0, 0]] },
  { pad: [[0, 1], [0, 0]], crop: [[1, 0], [0, 0]] },
  { pad: [[0, 0], [1, 0]], crop: [[0, 0], [0, 1]] },
  { pad: [[0, 0], [0, 1]], crop: [[0, 0], [1, 0]] },
]; // biome-ignore format: a direction a line
const WEIGHT_FILTERS = 16;

/**
 * Returns an attention map of one channel, 0 to 1 (Pan 2020, `SAM`): two rounds in which each pixel aggregates its neighbours, with a
 * weight for each direction that a side branch computes from the features.
 */
export function attentionMap(make: LayerBuilder, x: SymbolicTensor): SymbolicTensor {
  const filters = x.shape.at(-1) as number;
  const side = make.relu(make.conv(x, WEIGHT_FILTERS, 3, { useBias: false }));
  const branch = make.relu(make.conv(side, WEIGHT_FILTERS, 3, { useBias: false }));
  const weights = DIRECTIONS.map(() => make.conv(branch, 1, 1, { activation: 'sigmoid' }));
  const first = round(make, make.conv(x, filters, 1, { useBias: false }), weights);
  const second = round(make, make.conv(first, filters, 1, { useBias: false }), weights);
  const mixed = make.relu(make.conv(second, filters, 1, { useBias: false }));
  return make.conv(mixed, 1, 1, { useBias: false, activation: 'sigmoid', name: 'attention' });
}

/**
 * For each direction: relu(w * neighbour + b + x) times the weight of the direction, with one w and b for each filter. A pixel at the
 * edge has no neighbour: relu(x).
 */
function round(make: LayerBuilder, x: SymbolicTensor, weights: SymbolicTensor[]): SymbolicTensor {
  const { layers } = make.tf;
  return make.concatenate(
    ...DIRECTIONS.map(({ pad, crop }, i) => {
      const scaled = apply(
        layers.depthwiseConv2d({
          kernelSize: 1,
          depthwiseInitializer: make.kernel(),
          ...make.uniqueName('scale'),
        }),
        x,
      );
      const cropped = apply(layers.cropping2D({ cropping: crop, ...make.uniqueName('crop') }), scaled);
      const shifted = apply(layers.zeroPadding2d({ padding: pad, ...make.uniqueName('shift') }), cropped);
      return make.multiply(make.relu(make.add(shifted, x)), weights[i]!);
    }),
  );
}
