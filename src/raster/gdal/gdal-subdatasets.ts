/** Lists the layers of files with several rasters, with GDAL's names. */
import { resolve } from 'node:path';
import { unsupported } from '../errors.js';
import type { MultiDatasetFile, Subdataset } from '../raster-types.js';
import { GDAL_FORMATS } from './gdal-drivers.js';
import { type GdalInfo, runGdalInfo } from './gdalinfo.js';

/** A layer and GDAL's name for it. */
export interface GdalSubdataset extends Subdataset {
  dataset: string;
}

export async function listGdalSubdatasets(path: string, kind: 'hdf4' | 'netcdf'): Promise<MultiDatasetFile> {
  const info = await runGdalInfo(path, resolve(path), GDAL_FORMATS[kind].driver);
  const subdatasets = subdatasetsOf(info, path).map(({ dataset: _, ...layer }) => layer);
  return { path, kind, subdatasets, metadata: info.metadata };
}

/** GDAL's domain SUBDATASETS as layers. A file with a single raster has no such domain: the raster is its only layer. */
export function subdatasetsOf(info: GdalInfo, path: string): GdalSubdataset[] {
  const file = resolve(path);
  const found: (GdalSubdataset & { group: string })[] = [];
  for (let i = 1; ; i++) {
    const dataset = info.subdatasets[`SUBDATASET_${i}_NAME`];
    if (dataset === undefined) break;
    // GDAL cannot escape a quote within a quoted path.
    if (file.includes('"'))
      throw unsupported(path, 'its path contains a double quote, which GDAL cannot read');
    found.push(parseSubdataset(dataset, info.subdatasets[`SUBDATASET_${i}_DESC`] ?? '', file));
  }
  if (found.length === 0 && info.bands.length > 0) return [singleSubdataset(info, file)];
  const layers = withoutCoordinates(found);
  const count = new Map<string, number>();
  for (const { name } of layers) count.set(name, (count.get(name) ?? 0) + 1);
  return layers.map(({ group, ...layer }) => {
    const shared = (count.get(layer.name) ?? 0) > 1;
    return shared ? { ...layer, name: `${group}:${layer.name}` } : layer;
  });
}

/** In netCDF, two-dimensional variables with the latitudes and longitudes of other variables, by their CF standard names. */
function withoutCoordinates<L extends GdalSubdataset>(layers: L[]): L[] {
  const others = layers.filter(
    ({ dataset, description }) =>
      !(dataset.startsWith('NETCDF:') && /^\[\d+x\d+\] (latitude|longitude) \(/.test(description)),
  );
  return others.length > 0 ? others : layers;
}

/**
 * Names are such as HDF4_EOS:EOS_GRID:"path":grid:field, HDF4_SDS:UNKNOWN:"path":index and NETCDF:"path":variable, texts such
 * as [2400x2400] field grid (8-bit unsigned integer).
 */
function parseSubdataset(dataset: string, text: string, file: string): GdalSubdataset & { group: string } {
  const [, sizes = '', title = ''] = /^\[([\dx]*)\] *(.*?)(?: \([^()]*\))?$/.exec(text) ?? [];
  const inFile = dataset.slice(dataset.indexOf(file) + file.length).replace(/^"?:/, '');
  const parts = inFile.split(':');
  const indexed = /^\d+$/.test(inFile);
  return {
    name: indexed ? title : (parts.at(-1) ?? ''),
    group: indexed ? inFile : parts.slice(0, -1).join(':'),
    description: text,
    shape: sizes.split('x').filter(Boolean).map(Number),
    dataset,
  };
}

function singleSubdataset({ bands, width, height }: GdalInfo, file: string): GdalSubdataset {
  const [first] = bands;
  const name = first.variable ?? first.description ?? 'raster';
  const shape = bands.length > 1 ? [bands.length, height, width] : [height, width];
  return { name, description: first.description ?? name, shape, dataset: file };
}
