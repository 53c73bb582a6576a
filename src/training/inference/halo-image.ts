/** An image of a tile with a margin of pixels around it, which come from the neighbours of the tile. */

/** A rectangle of pixels. */
export interface PixelBox {
  column: number;
  row: number;
  width: number;
  height: number;
}

/** Invariant: the pixels within `tile` are those of the tile, and all planes have the size of the image. */
export interface HaloImage {
  width: number;
  height: number;
  /** The tile within the image. */
  tile: PixelBox;
  /**
   * Column and row of the north-western pixel of the tile among all pixels of its grid, so that the images of neighbouring tiles divide
   * their common pixels in the same way.
   */
  origin: { column: number; row: number };
  /** One plane for each input of the model. */
  inputs: Float32Array[];
  /** 1 where the model may read the inputs. */
  inputMask: Uint8Array;
}

/** Returns the position of the north-western pixel of the image among all pixels of its grid. */
export const latticeOffset = ({ origin, tile }: HaloImage): { column: number; row: number } => ({
  column: origin.column - tile.column,
  row: origin.row - tile.row,
});

/** Returns the common part of two rectangles, whose width or height is 0 if there is none. */
export function intersection(a: PixelBox, b: PixelBox): PixelBox {
  const column = Math.max(a.column, b.column);
  const row = Math.max(a.row, b.row);
  return {
    ...{ column, row },
    width: Math.max(0, Math.min(a.column + a.width, b.column + b.width) - column),
    height: Math.max(0, Math.min(a.row + a.height, b.row + b.height) - row),
  };
}
