/** Makes a single-band Cloud Optimized GeoTIFF from a band of a tile, for programs that read one band per file. */
import { gridByName } from '../../grid/index.js';
import { type AssembledFile, declaredNodata, extractBand, spectralTags } from '../../raster/index.js';
import type { GroupRecord, TileRecord } from '../../storage/index.js';
import { withOpenTile } from './open-tile-for-reading.js';
import type { TileGeoTiff } from './read-tile-geotiff.js';

/** Band number `band`, from 0, of the group's file at `path`. Throws TW_IMAGERY_TILE_FILE. */
export function buildSingleBandCog(
  { grid, geocode }: Pick<TileRecord, 'grid' | 'geocode'>,
  group: GroupRecord,
  band: number,
  path: string,
): AssembledFile {
  const { epsg, bounds } = gridByName(grid);
  const { west, south, east, north } = bounds(geocode);
  const { width, height, dataType, nodata } = group;
  const { name, scale, offset, ...tags } = group.bands[band];
  const facts = {
    width,
    height,
    dataType,
    epsg,
    nodata: declaredNodata(dataType, nodata),
    transform: {
      originX: west,
      originY: north,
      pixelWidth: (east - west) / width,
      pixelHeight: (north - south) / height,
    },
    bandTags: [{ description: name, scale, offset, ...spectralTags(tags) }],
  };
  return withOpenTile(path, (_, { levels, masks }) =>
    extractBand(
      facts,
      levels.map((level) => blocksOf(level, band)),
      masks.map((mask) => blocksOf(mask, 0)),
    ),
  );
}

function blocksOf({ perBand, offsets, byteCounts, ...level }: TileGeoTiff['levels'][number], band: number) {
  const start = band * perBand;
  const end = start + perBand;
  return { ...level, offsets: offsets.subarray(start, end), byteCounts: byteCounts.subarray(start, end) };
}
