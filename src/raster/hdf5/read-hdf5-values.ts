/** Reads small datasets of HDF5 files: lists such as the wavelengths of a cube's bands, and single values of a table. */
import { corrupt } from '../errors.js';
import { isMissing, missingData } from './cf/index.js';
import { TypeClass, withHdf5 } from './hdf5-file.js';
import { readHyperslab, readStoredDataset } from './hdf5-stored-dataset.js';

/** Limit of a list: no instrument has more bands. */
const MAX_VALUES = 16_384;

/**
 * The numbers or texts of one-dimensional datasets, by path; missing datasets have no entry. Throws TW_RASTER_UNREADABLE, and
 * TW_RASTER_CORRUPT for datasets of another shape.
 */
export function readHdf5Lists(path: string, datasets: string[]): Promise<Map<string, (number | string)[]>> {
  return withHdf5(path, (file) => {
    const lists = new Map<string, (number | string)[]>();
    for (const name of datasets) {
      const dataset = file.dataset(name);
      if (!dataset) continue;
      const { shape, type } = file.metadata(dataset);
      const [size = 0, ...others] = shape ?? [];
      if (size === 0 || size > MAX_VALUES || others.length > 0)
        throw corrupt(path, `${name} is ${shape?.join(' x ') || 'empty'}, and no list`);
      if (type === TypeClass.string) lists.set(name, file.texts(name) ?? []);
      else lists.set(name, Array.from(file.slice(dataset, [[0, size]]), Number));
    }
    return lists;
  });
}

/**
 * Numbers of a two-dimensional dataset at positions (row, column); NaN for missing data. Throws the errors of `openRaster`,
 * and TW_RASTER_CORRUPT.
 */
export function readHdf5Points(path: string, layer: string, places: [number, number][]): Promise<number[]> {
  return withHdf5(path, (file) => {
    const { dataset, dataType, types } = readStoredDataset(file, layer);
    const { nodata, missing } = missingData(file, layer, types);
    return places.map(([row, column]) => {
      const pixel: [number, number][] = [
        [row, row + 1],
        [column, column + 1],
      ];
      const found = readHyperslab(file, dataset, dataType, pixel);
      if (found.length === 0) throw corrupt(path, `${layer} cannot be read`);
      const [value] = found;
      return value === nodata || (missing && isMissing(value, missing)) ? NaN : value;
    });
  });
}
