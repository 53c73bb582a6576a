/** An image of many cells: its pixel grid, and the pixels of tiles copied into it. */
import { gridByName, type PixelGrid } from '../../grid/index.js';
import type { PixelArray } from '../../raster/index.js';
import type { TileRecord } from '../../storage/index.js';

/** The pixel grid of an image, in the coordinates of the grid of its cells. */
export interface MosaicGrid extends PixelGrid {
  west: number;
  north: number;
  pixelWidth: number;
  pixelHeight: number;
}

/** A cell with its size in pixels. */
type SizedCell = Pick<TileRecord, 'grid' | 'geocode'> & { size: PixelGrid };

/** Returns the smallest image that contains all cells, which are of one grid, with the pixels of the finest. */
export function mosaicGrid(cells: readonly SizedCell[]): MosaicGrid {
  const extent = { west: Infinity, south: Infinity, east: -Infinity, north: -Infinity };
  let [pixelWidth, pixelHeight] = [Infinity, Infinity];
  for (const { grid, geocode, size } of cells) {
    const { west, south, east, north } = gridByName(grid).bounds(geocode);
    extent.west = Math.min(extent.west, west);
    extent.south = Math.min(extent.south, south);
    extent.east = Math.max(extent.east, east);
    extent.north = Math.max(extent.north, north);
    pixelWidth = Math.min(pixelWidth, (east - west) / size.width);
    pixelHeight = Math.min(pixelHeight, (north - south) / size.height);
  }
  const width = Math.round((extent.east - extent.west) / pixelWidth);
  const height = Math.round((extent.north - extent.south) / pixelHeight);
  return {
    ...{ west: extent.west, north: extent.north, width, height },
    // The outer edges are exact, even if the cells of another row have another number of pixels.
    pixelWidth: (extent.east - extent.west) / width,
    pixelHeight: (extent.north - extent.south) / height,
  };
}

/**
 * Copies the pixels of a cell that are not `empty` into an image, each to the pixels of the image whose centre it contains. Cells of the
 * same pixel size are copied without resampling.
 */
export function copyCell(
  image: MosaicGrid,
  out: PixelArray,
  { grid, geocode, size }: SizedCell,
  pixels: PixelArray,
  empty: number,
): void {
  const { west, south, east, north } = gridByName(grid).bounds(geocode);
  const columns = sources(
    west - image.west,
    (east - west) / size.width,
    size.width,
    image.pixelWidth,
    image.width,
  );
  const rows = sources(
    image.north - north,
    (north - south) / size.height,
    size.height,
    image.pixelHeight,
    image.height,
  );
  for (const [row, from] of rows)
    for (const [column, source] of columns) {
      const value = pixels[from * size.width + source];
      if (value !== empty && !Number.isNaN(value)) out[row * image.width + column] = value;
    }
}

/** Pairs of a pixel of the image and the pixel of the cell that contains its centre, along one axis that starts at the image's edge. */
function sources(
  from: number,
  cellPixel: number,
  count: number,
  imagePixel: number,
  length: number,
): [image: number, cell: number][] {
  const pairs: [number, number][] = [];
  const first = Math.max(0, Math.floor(from / imagePixel) - 1);
  for (let at = first; at < length; at++) {
    const source = Math.floor(((at + 0.5) * imagePixel - from) / cellPixel);
    if (source >= count) break;
    if (source >= 0) pairs.push([at, source]);
  }
  return pairs;
}
