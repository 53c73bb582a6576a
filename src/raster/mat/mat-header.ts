/** Opens a cube in a MATLAB 5 file: a numeric array with rows, columns and bands. */
import { corrupt, noCrs, subdatasetNotFound, subdatasetNotNamed, unsupported } from '../errors.js';
import {
  type GeoreferencingOverride,
  georeferenceByCorners,
  MAX_BANDS,
  MAX_BLOCK_BYTES,
  MAX_SIDE_PIXELS,
  withFile,
} from '../file-access/index.js';
import { bytesPerStored, dataTypeOfStored } from '../pixels/index.js';
import type { RasterHeader } from '../raster-types.js';
import { type MatArray, matArrays } from './mat-elements.js';

/** Deflate cannot compress data by more than this factor. */
const MAX_DEFLATE_RATIO = 1032;

/**
 * Opens the array named `layer`, or the only one with three dimensions. The file has neither georeferencing nor wavelengths.
 * Throws TW_RASTER_CORRUPT, _TRUNCATED, _UNSUPPORTED, _NO_LAYER, _SEVERAL_LAYERS, and _NO_CRS without `position`.
 */
export function openMat(
  path: string,
  layer?: string,
  position?: GeoreferencingOverride,
): Promise<RasterHeader> {
  return withFile(path, async (file): Promise<RasterHeader> => {
    const array = chooseArray(await matArrays(file), path, layer);
    const [height, width, bands] = array.dimensions as [number, number, number];
    const { storedType, start, bytes, isCompressed, dataOffset, dataBytes, littleEndian } = array;
    const size = bytesPerStored(storedType);
    if (![height, width, bands].every((side) => side >= 1) || width * height * bands * size !== dataBytes)
      throw corrupt(path, `${array.name} of ${array.dimensions.join(' x ')} has ${dataBytes} bytes`);
    if (
      width > MAX_SIDE_PIXELS ||
      height > MAX_SIDE_PIXELS ||
      bands > MAX_BANDS ||
      width * bands * size > MAX_BLOCK_BYTES
    )
      throw unsupported(path, `${array.name} has ${array.dimensions.join(' x ')} values`);
    if (array.isComplex) throw unsupported(path, `${array.name} holds complex numbers`);
    const longest = isCompressed ? bytes * MAX_DEFLATE_RATIO : bytes;
    if (dataOffset + dataBytes > longest)
      throw corrupt(path, `${array.name} has ${dataBytes} bytes, which do not fit into ${bytes}`);
    if (!position) throw noCrs(path, 'MATLAB files have no position');
    return {
      path,
      fileBytes: file.size,
      width,
      height,
      bands,
      dataType: dataTypeOfStored(storedType),
      ...georeferenceByCorners(position, { path, width, height }),
      nodata: undefined,
      blocks: {
        reader: 'mat',
        width,
        height: 1,
        storedType,
        start,
        bytes,
        isCompressed,
        dataOffset,
        littleEndian,
      },
      bandTags: Array.from({ length: bands }, () => ({})),
      metadata: {},
    };
  });
}

function chooseArray(arrays: MatArray[], path: string, layer: string | undefined): MatArray {
  const cubes = arrays.filter(({ dimensions }) => dimensions.length === 3);
  const names = cubes.map(({ name }) => name);
  if (layer === undefined) {
    if (cubes.length > 1) throw subdatasetNotNamed(path, names);
    if (cubes[0]) return cubes[0];
    const found = arrays.map(({ name, dimensions }) => `${name} (${dimensions.join(' x ')})`);
    const others = found.length > 0 ? `, but ${found.join(', ')}` : '';
    throw unsupported(path, `it has no numeric array with rows, columns and bands${others}`);
  }
  const chosen = cubes.find(({ name }) => name === layer);
  if (!chosen) throw subdatasetNotFound(path, layer, names);
  return chosen;
}
