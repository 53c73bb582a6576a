/** Sizes beyond which a file is not believed. */

/** No image of a real sensor is wider; it keeps sizes far from where arithmetic on them would lose bits. */
export const MAX_SIDE_PIXELS = 2 ** 24;
export const MAX_BANDS = 4096;
/** The most bytes that one block may decode to. */
export const MAX_BLOCK_BYTES = 2 ** 30;
