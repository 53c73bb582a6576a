/** Properties of a pixel of a Landsat scene. */
interface PixelQuality {
  fill: boolean;
  dilatedCloud: boolean;
  cirrus: boolean;
  cloud: boolean;
  shadow: boolean;
  snow: boolean;
  water: boolean;
}

/**
 * QA_PIXEL of Landsat 8-9 Collection 2 (LSDS-1619, table 6-3): bits 0-7 flags, then two bits of confidence each for cloud,
 * shadow, snow and cirrus (1 low, 3 high). A clear land pixel is 21824.
 */
export function qaPixel({ fill, dilatedCloud, cirrus, cloud, shadow, snow, water }: PixelQuality): number {
  if (fill) return 1;
  const confidence = (high: boolean) => (high ? 3 : 1);
  const clear = !(cloud || dilatedCloud);
  return (
    (dilatedCloud ? 1 << 1 : 0) |
    (cirrus ? 1 << 2 : 0) |
    (cloud ? 1 << 3 : 0) |
    (shadow ? 1 << 4 : 0) |
    (snow ? 1 << 5 : 0) |
    (clear ? 1 << 6 : 0) |
    (water ? 1 << 7 : 0) |
    (confidence(cloud) << 8) |
    (confidence(shadow) << 10) |
    (confidence(snow) << 12) |
    (confidence(cirrus) << 14)
  );
}
