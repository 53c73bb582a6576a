/** Lists the datasets of an HDF5 or netCDF-4 file. */
import { odlNodes, parseOdl } from '../metadata/index.js';
import type { MultiDatasetFile, Subdataset } from '../raster-types.js';
import { readStructMetadata } from './hdf5-eos-georeferencing.js';
import { type Attributes, type Hdf5File, TypeClass, withHdf5 } from './hdf5-file.js';

/** Key of the metadata for the structural metadata of an HDF-EOS file, as text. */
const STRUCTURE_KEY = 'StructMetadata';
const FILE_ATTRIBUTES = '/HDFEOS/ADDITIONAL/FILE_ATTRIBUTES';
const INVENTORY_METADATA = /^\/HDFEOS INFORMATION\/(Core|Archive)Metadata\.\d+$/i;

/**
 * Lists every numeric dataset with two dimensions or more, and the metadata of the file: its global attributes, the items of
 * HDF-EOS inventories by their names, and its structural metadata under "StructMetadata". Throws TW_RASTER_UNREADABLE and
 * _CORRUPT.
 */
export function listHdf5Subdatasets(path: string): Promise<MultiDatasetFile> {
  return withHdf5(path, (file) => {
    const datasets = file.datasets();
    const metadata = {
      ...inventories(file, datasets),
      ...textOf(file.attributes(FILE_ATTRIBUTES)),
      ...textOf(file.attributes('/')),
    };
    const structure = readStructMetadata(file);
    if (structure !== undefined) metadata[STRUCTURE_KEY] = structure;
    return {
      path,
      kind: 'hdf5',
      subdatasets: datasets.flatMap((name) => subdatasetOf(file, name)),
      metadata,
    };
  });
}

function subdatasetOf(file: Hdf5File, name: string): Subdataset[] {
  const { type, shape } = file.metadata(file.dataset(name)!);
  const numeric = type === TypeClass.integer || type === TypeClass.float || type === TypeClass.enum;
  if (!numeric || !shape || shape.length < 2) return [];
  const { long_name: description = '' } = file.attributes(name);
  return [{ name, description: String(description), shape }];
}

function textOf(attributes: Attributes): Record<string, string> {
  const entries = Object.entries(attributes);
  return Object.fromEntries(
    entries.map(([name, value]) => [name, typeof value === 'string' ? value : value.join(', ')]),
  );
}

/** Items are ODL objects with a VALUE. */
function inventories(file: Hdf5File, datasets: string[]): Record<string, string> {
  const items: Record<string, string> = {};
  for (const path of datasets.filter((name) => INVENTORY_METADATA.test(name))) {
    for (const { name, values } of odlNodes(parseOdl(file.text(path) ?? ''))) {
      if (values.VALUE !== undefined) items[name] = values.VALUE.replace(/^\("?(.*?)"?\)$/, '$1');
    }
  }
  return items;
}
