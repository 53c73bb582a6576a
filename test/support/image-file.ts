/** A file that holds one image. */
import { statSync } from 'node:fs';
import type { ImageFile } from '../../src/raster/index.js';

/** The image of a file that exists. */
export const imageFile = (path: string): ImageFile => ({ path, start: 0, bytes: statSync(path).size });
