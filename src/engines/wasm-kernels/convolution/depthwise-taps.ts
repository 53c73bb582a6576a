/** How the taps of a depthwise convolution meet the pixels: shared by its two gradients. */
import type { backend_util } from '@tensorflow/tfjs-core';

/**
 * Calls `visit` for each pair of a filter tap and an output pixel whose input pixel lies inside the image, with the
 * offsets of the first channel of each: in x, in dy and in the filter.
 */
export function forEachTap(
  conv: backend_util.Conv2DInfo,
  visit: (x: number, dy: number, filter: number) => void,
): void {
  const { batchSize, inHeight, inWidth, inChannels, outHeight, outWidth, outChannels } = conv;
  for (let n = 0; n < batchSize; n++) {
    for (let row = 0; row < outHeight; row++) {
      for (let column = 0; column < outWidth; column++) {
        const dy = ((n * outHeight + row) * outWidth + column) * outChannels;
        for (let i = 0; i < conv.filterHeight; i++) {
          const y = row * conv.strideHeight - conv.padInfo.top + i * conv.dilationHeight;
          if (y < 0 || y >= inHeight) continue;
          for (let j = 0; j < conv.filterWidth; j++) {
            const x = column * conv.strideWidth - conv.padInfo.left + j * conv.dilationWidth;
            if (x < 0 || x >= inWidth) continue;
            visit(
              ((n * inHeight + y) * inWidth + x) * inChannels,
              dy,
              (i * conv.filterWidth + j) * outChannels,
            );
          }
        }
      }
    }
  }
}

/** Whether it does nothing but multiply each channel by its own value, as one of 1x1 does. */
export function isPerChannelScale(conv: backend_util.Conv2DInfo): boolean {
  const { filterHeight, filterWidth, strideHeight, strideWidth, outHeight, outWidth } = conv;
  const isPixel = filterHeight * filterWidth * strideHeight * strideWidth === 1;
  return (
    isPixel &&
    conv.outChannels === conv.inChannels &&
    outHeight === conv.inHeight &&
    outWidth === conv.inWidth
  );
}
