/** Limits on sizes in files; larger ones are errors. */

/** No real sensor has wider images. The limit keeps arithmetic on sizes exact. */
export const MAX_SIDE_PIXELS = 2 ** 24;
export const MAX_BANDS = 4096;
/** Largest decoded size of one block, bytes. */
export const MAX_BLOCK_BYTES = 2 ** 30;
