/** Files of several rasters: their layers, and GDAL's names for these. */
import { resolve } from 'node:path';
import { unsupported } from '../errors.js';
import type { Container, Layer } from '../types.js';
import { FORMATS } from './drivers.js';
import { type GdalInfo, gdalInfo } from './gdalinfo.js';

/** A layer and what GDAL calls it. */
export interface GdalLayer extends Layer {
  dataset: string;
}

export async function openGdalContainer(path: string, kind: 'hdf4' | 'netcdf'): Promise<Container> {
  const info = await gdalInfo(path, resolve(path), FORMATS[kind].driver);
  const layers = layersOf(info, path).map(({ name, description, shape }) => ({ name, description, shape }));
  return { path, kind, layers, metadata: info.metadata };
}

/** GDAL's domain SUBDATASETS as layers. A file of a single raster has none there: it is the only layer. */
export function layersOf(info: GdalInfo, path: string): GdalLayer[] {
  const file = resolve(path);
  const found: (GdalLayer & { group: string })[] = [];
  for (let i = 1; ; i++) {
    const dataset = info.subdatasets[`SUBDATASET_${i}_NAME`];
    if (dataset === undefined) break;
    // GDAL knows no way to write a quote within a quoted path.
    if (file.includes('"')) throw unsupported(path, 'its path holds a double quote, which GDAL cannot read');
    found.push(parseLayer(dataset, info.subdatasets[`SUBDATASET_${i}_DESC`] ?? '', file));
  }
  if (found.length === 0 && info.bands.length > 0) return [onlyLayer(info, file)];
  const layers = withoutCoordinates(found);
  const count = new Map<string, number>();
  for (const { name } of layers) count.set(name, (count.get(name) ?? 0) + 1);
  return layers.map(({ group, ...layer }) => {
    const shared = (count.get(layer.name) ?? 0) > 1;
    return shared ? { ...layer, name: `${group}:${layer.name}` } : layer;
  });
}

/** In netCDF, variables of two dimensions that hold the latitudes and longitudes of the others, by their CF standard names. */
function withoutCoordinates<L extends GdalLayer>(layers: L[]): L[] {
  const others = layers.filter(
    ({ dataset, description }) =>
      !(dataset.startsWith('NETCDF:') && /^\[\d+x\d+\] (latitude|longitude) \(/.test(description)),
  );
  return others.length > 0 ? others : layers;
}

/**
 * Names are such as HDF4_EOS:EOS_GRID:"path":grid:field, HDF4_SDS:UNKNOWN:"path":index and NETCDF:"path":variable, texts
 * such as [2400x2400] field grid (8-bit unsigned integer).
 */
function parseLayer(dataset: string, text: string, file: string): GdalLayer & { group: string } {
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

function onlyLayer({ bands, width, height }: GdalInfo, file: string): GdalLayer {
  const [first] = bands;
  const name = first.variable ?? first.description ?? 'raster';
  const shape = bands.length > 1 ? [bands.length, height, width] : [height, width];
  return { name, description: first.description ?? name, shape, dataset: file };
}
