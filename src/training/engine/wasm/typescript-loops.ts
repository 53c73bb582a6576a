import type { Loops } from './loops.js';

/** In plain TypeScript. Sums are taken in float64. */
export const typescriptLoops: Loops = {
  columnSums(rows, columns, x, sums) {
    const all = new Float64Array(columns);
    for (let row = 0, at = 0; row < rows; row++) for (let c = 0; c < columns; c++) all[c] += x[at++];
    sums.set(all);
  },

  maxPoolGradient(geometry, x, dy, dx) {
    const [batch, height, width, channels, rows, columns, filterHeight, filterWidth] = geometry;
    const [strideHeight, strideWidth, top, left] = geometry.subarray(8);
    const largest = new Float32Array(channels);
    const position = new Int32Array(channels);
    let from = 0;
    for (let n = 0; n < batch; n++) {
      for (let row = 0; row < rows; row++) {
        const firstRow = row * strideHeight - top;
        const endRow = Math.min(height, firstRow + filterHeight);
        for (let column = 0; column < columns; column++, from += channels) {
          const firstColumn = column * strideWidth - left;
          const endColumn = Math.min(width, firstColumn + filterWidth);
          largest.fill(-Infinity);
          position.fill(-1);
          for (let i = Math.max(0, firstRow); i < endRow; i++) {
            for (let j = Math.max(0, firstColumn); j < endColumn; j++) {
              const at = ((n * height + i) * width + j) * channels;
              for (let c = 0; c < channels; c++) {
                const value = x[at + c];
                if (value > largest[c]) {
                  largest[c] = value;
                  position[c] = at + c;
                }
              }
            }
          }
          for (let c = 0; c < channels; c++) {
            const at = position[c];
            if (at >= 0) dx[at] += dy[from + c];
          }
        }
      }
    }
  },

  leakyRelu(length, alpha, x, y) {
    for (let i = 0; i < length; i++) {
      const value = x[i];
      y[i] = value < 0 ? (alpha === 0 ? 0 : alpha * value) : value;
    }
  },

  leakyReluGradient(length, alpha, x, dy, dx) {
    for (let i = 0; i < length; i++) dx[i] = dy[i] * (x[i] > 0 ? 1 : alpha);
  },

  scaleChannels(rows, channels, x, mean, scale, offset, y) {
    for (let row = 0, at = 0; row < rows; row++)
      for (let c = 0; c < channels; c++, at++) y[at] = (x[at] - mean[c]) * scale[c] + offset[c];
  },

  channelMoments(rows, channels, x, mean, variance) {
    // Distances from the first row, since a mean that is large beside the deviations would swallow these.
    const sums = new Float64Array(channels);
    const squares = new Float64Array(channels);
    for (let row = 0, at = 0; row < rows; row++)
      for (let c = 0; c < channels; c++) {
        const distance = x[at++] - x[c];
        sums[c] += distance;
        squares[c] += distance * distance;
      }
    for (let c = 0; c < channels; c++) {
      const offset = sums[c] / rows;
      mean[c] = x[c] + offset;
      variance[c] = Math.max(0, squares[c] / rows - offset * offset);
    }
  },

  batchNormSums(rows, channels, x, dy, mean, sums, products) {
    const allSums = new Float64Array(channels);
    const allProducts = new Float64Array(channels);
    for (let row = 0, at = 0; row < rows; row++)
      for (let c = 0; c < channels; c++, at++) {
        allSums[c] += dy[at];
        allProducts[c] += dy[at] * (x[at] - mean[c]);
      }
    sums.set(allSums);
    products.set(allProducts);
  },

  batchNormGradient(rows, channels, x, dy, mean, scale, slope, offset, dx) {
    for (let row = 0, at = 0; row < rows; row++)
      for (let c = 0; c < channels; c++, at++)
        dx[at] = scale[c] * dy[at] + slope[c] * (x[at] - mean[c]) + offset[c];
  },

  copyColumns([rows, columns, fromWidth, fromColumn, toWidth, toColumn], from, to) {
    for (let row = 0; row < rows; row++) {
      const source = row * fromWidth + fromColumn;
      const target = row * toWidth + toColumn;
      // A call for each run takes longer than a few values do.
      if (columns > 32) to.set(from.subarray(source, source + columns), target);
      else for (let c = 0; c < columns; c++) to[target + c] = from[source + c];
    }
  },

  adam(
    ...[length, beta1, beta2, decay, rate, epsilon, variable, gradient, first, second, ...to]: Parameters<
      Loops['adam']
    >
  ) {
    const [toVariable, toFirst, toSecond] = to;
    for (let i = 0; i < length; i++) {
      const g = gradient[i] + decay * variable[i];
      const m = first[i] + (1 - beta1) * (g - first[i]);
      const v = second[i] + (1 - beta2) * (g * g - second[i]);
      toFirst[i] = m;
      toSecond[i] = v;
      toVariable[i] = variable[i] - (rate * m) / (Math.sqrt(v) + epsilon);
    }
  },
};
