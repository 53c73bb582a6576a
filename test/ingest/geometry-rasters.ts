/** Random rasters anywhere on Earth, described by headers without pixels. */
import fc from 'fast-check';
import type { Scene } from '../../src/ingest/scene.js';
import {
  type Affine,
  type Crs,
  createTransform,
  crsFromEpsg,
  type RasterHeader,
} from '../../src/raster/index.js';

export const MODIS: Crs = {
  epsg: undefined,
  proj4: '+proj=sinu +lon_0=0 +x_0=0 +y_0=0 +R=6371007.181 +units=m +no_defs',
  geographic: false,
};

export interface Placed {
  name: string;
  crs: Crs;
  transform: Affine;
  width: number;
  height: number;
}

/** A raster around a point of its system; `angle` in radians, `shear` as a share of the pixel. */
export function rasterAround(
  name: string,
  crs: Crs,
  [x, y]: [number, number],
  size: { width: number; height: number; pixel: number; angle?: number; shear?: number },
): Placed {
  const { width, height, pixel, angle = 0, shear = 0 } = size;
  const xx = pixel * Math.cos(angle);
  const yx = pixel * Math.sin(angle);
  const xy = pixel * (Math.sin(angle) + shear * Math.cos(angle));
  const yy = pixel * (-Math.cos(angle) + shear * Math.sin(angle));
  const originX = x - (xx * width) / 2 - (xy * height) / 2;
  const originY = y - (yx * width) / 2 - (yy * height) / 2;
  return { name, crs, transform: { originX, originY, xx, xy, yx, yy }, width, height };
}

export function headerOf({ crs, transform, width, height }: Placed): RasterHeader {
  return {
    path: 'raster.tif',
    fileBytes: width * height,
    width,
    height,
    bands: 1,
    dataType: 'uint8',
    crs,
    transform,
    nodata: undefined,
    blocks: {
      reader: 'tiff',
      width,
      height: 1,
      planar: false,
      compression: 1,
      predictor: 1,
      offsets: [],
      byteCounts: [],
      littleEndian: true,
      directory: 0,
    },
    bandTags: [{}],
    metadata: {},
    dateTime: undefined,
    palette: false,
  };
}

export function sceneOf(raster: Placed, resolution = { x: 10, y: 10 }): Scene {
  const band = { name: 'b1', header: headerOf(raster), index: 0, scale: 1, offset: 0 };
  return {
    path: 'raster.tif',
    id: 'raster',
    collection: { id: 'test', title: 'test', license: 'proprietary' },
    platform: null,
    start: 0,
    end: 0,
    groups: [{ name: 'g', role: 'data', resampling: 'nearest', resolution, nodata: null, bands: [band] }],
    quality: [],
    reflectanceTest: false,
    warnings: [],
  };
}

/** A system, and longitudes and latitudes of the centres of scenes in it. */
const REGIONS: { epsg: number | 'modis'; lon: [number, number]; lat: [number, number] }[] = [
  { epsg: 32601, lon: [-180.5, -173], lat: [0, 84] },
  { epsg: 32660, lon: [173, 180.5], lat: [0, 84] },
  { epsg: 32701, lon: [-180.5, -173], lat: [-80, 0] },
  { epsg: 32760, lon: [173, 180.5], lat: [-80, 0] },
  { epsg: 32633, lon: [11, 19], lat: [0, 84] },
  { epsg: 32631, lon: [-1, 7], lat: [-2, 2] },
  { epsg: 3031, lon: [-180, 180], lat: [-90, -60] },
  { epsg: 3976, lon: [-180, 180], lat: [-90, -60] },
  { epsg: 3413, lon: [-180, 180], lat: [60, 90] },
  { epsg: 3995, lon: [-180, 180], lat: [85, 90] },
  { epsg: 32661, lon: [-180, 180], lat: [80, 90] },
  { epsg: 32761, lon: [-180, 180], lat: [-90, -80] },
  { epsg: 6931, lon: [-180, 180], lat: [30, 90] },
  { epsg: 'modis', lon: [-180, 180], lat: [-90, 90] },
  { epsg: 5070, lon: [-130, -60], lat: [20, 55] },
  { epsg: 3338, lon: [-190, -130], lat: [50, 72] },
  { epsg: 3577, lon: [110, 155], lat: [-45, -10] },
  { epsg: 3347, lon: [-140, -50], lat: [40, 85] },
  { epsg: 2193, lon: [166, 182], lat: [-48, -34] },
  { epsg: 2056, lon: [5, 11], lat: [45, 48] },
  { epsg: 5880, lon: [-75, -35], lat: [-34, 5] },
  { epsg: 3857, lon: [-180, 180], lat: [-88, 88] },
  { epsg: 6933, lon: [-180, 180], lat: [-85, 85] },
  { epsg: 4326, lon: [-180, 180], lat: [-90, 90] },
  { epsg: 4326, lon: [170, 190], lat: [-80, 80] },
  { epsg: 4326, lon: [180, 360], lat: [-90, 90] },
  { epsg: 4269, lon: [-190, -170], lat: [-80, 80] },
];

/** Sizes 1 to 3000, pixels of 1 m to 50 km, upright, rotated or sheared, within the area of its system. */
export const rasters: fc.Arbitrary<Placed> = fc
  .record({
    region: fc.constantFrom(...REGIONS),
    u: fc.noBias(fc.double({ min: 0, max: 1, noNaN: true })),
    v: fc.noBias(fc.double({ min: 0, max: 1, noNaN: true })),
    width: fc.integer({ min: 1, max: 3000 }),
    height: fc.integer({ min: 1, max: 3000 }),
    pixel: fc.noBias(fc.double({ min: 0, max: Math.log(50_000), noNaN: true })).map(Math.exp),
    angle: fc.oneof(fc.constant(0), fc.noBias(fc.double({ min: -Math.PI, max: Math.PI, noNaN: true }))),
    shear: fc.oneof(fc.constant(0), fc.double({ min: -0.7, max: 0.7, noNaN: true })),
  })
  .map(({ region, u, v, pixel, ...rest }) => {
    const crs = region.epsg === 'modis' ? MODIS : crsFromEpsg(region.epsg);
    const lon = region.lon[0] + u * (region.lon[1] - region.lon[0]);
    const lat = region.lat[0] + v * (region.lat[1] - region.lat[0]);
    // Transverse and conic maps are not used far from home; others go round the Earth.
    const reach = [3031, 3976, 3413, 3995, 6931, 'modis', 3857, 6933, 4326, 4269].includes(region.epsg)
      ? 3e7
      : 1.5e6;
    const shrunk = Math.min(pixel, reach / Math.max(rest.width, rest.height));
    const place: [number, number] = crs.geographic ? [lon, lat] : createTransform('EPSG:4326', crs)(lon, lat);
    const size = { ...rest, pixel: crs.geographic ? shrunk / 111_000 : shrunk };
    return rasterAround(String(region.epsg), crs, place, size);
  });
