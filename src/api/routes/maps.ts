/** XYZ map tiles of a collection, TileJSON, and previews of single tiles. */

import { createHash } from 'node:crypto';
import { Readable } from 'node:stream';
import type { FastifyReply, FastifyRequest } from 'fastify';
import {
  ALGORITHMS,
  COLORMAPS,
  type EncodedImage,
  type ImageFormat,
  noMapTile,
  PIXEL_SELECTIONS,
  type PixelSelection,
  RESAMPLING_METHODS,
  type RenderParams,
} from '../../imagery/index.js';
import {
  attributionFor,
  datetimeSchema,
  type Filter,
  type FilterParams,
  filterQuery,
  parseFilter,
  parseSource,
} from '../../query/index.js';
import { documented } from '../../utils/json-schema.js';
import { notModified, partialMembers, sendRanged, untilDisconnected } from '../answers.js';
import { resourceNotFound } from '../errors.js';
import { baseUrl, requestUrl } from '../links.js';
import { closedObject } from '../schemas/builders.js';
import { describeWithTag, emptyResponse, fileResponse, jsonResponse } from '../schemas/openapi.js';
import type { RouteGroup } from '../services.js';
import { requireCollection } from './collections.js';

const text = { type: 'string' };
const texts = { type: 'array', items: text, minItems: 1 };

const NUMBER_PATTERN = '[-+]?([0-9]+\\.?[0-9]*|\\.[0-9]+)([eE][-+]?[0-9]+)?';

/** JSON Schema of the render options, with titiler's names. */
const renderQuery = {
  assets: texts,
  bidx: { type: 'array', items: { type: 'integer', minimum: 1 }, minItems: 1 },
  expression: { ...text, description: 'Band expressions; not together with assets and bidx' },
  algorithm: { enum: ALGORITHMS },
  algorithm_params: { ...text, description: 'Parameters of the algorithm, as a JSON object' },
  rescale: {
    ...texts,
    items: documented(text, { pattern: `^${NUMBER_PATTERN},${NUMBER_PATTERN}$` }),
    description: 'low,high with low below high: one for all bands, or one for each',
  },
  color_formula: {
    ...text,
    description: 'Operations such as: gamma rgb 1.8, sigmoidal rgb 6 0.2, saturation 1.2',
  },
  colormap_name: documented(
    {
      ...text,
      description: "A colormap of Matplotlib or rio-tiler; a name with the suffix '_r' reverses it",
    },
    { enum: COLORMAPS.flatMap((name) => [name, `${name}_r`]) },
  ),
  colormap: {
    ...text,
    description: 'Colours of values or of intervals, as JSON; not together with colormap_name',
  },
  resampling: { enum: RESAMPLING_METHODS },
  reproject: {
    enum: RESAMPLING_METHODS,
    description: 'Replaces resampling on maps of collections on the geohash grid',
  },
  nodata: documented(text, { pattern: `^([nN][aA][nN]|${NUMBER_PATTERN})$` }),
  return_mask: { type: 'boolean', description: 'false: the picture has no alpha channel' },
};

/** JSON Schema of the parameters of map tiles alone: margins and the choice of pixels, with titiler's names. */
const mosaicQuery = {
  pixel_selection: {
    enum: PIXEL_SELECTIONS,
    default: 'first',
    description:
      'first: each pixel is from the least cloudy tile in which it is clear. median: the median of up to nine clear tiles',
  },
  buffer: {
    type: 'number',
    minimum: 0.5,
    maximum: 99,
    multipleOf: 0.5,
    description:
      'Pixels beyond each side of the tile; the picture is larger by these pixels, except those that the algorithm removes',
  },
  padding: {
    type: 'integer',
    minimum: 1,
    maximum: 99,
    description:
      'Accepted for compatibility with titiler; the pixels that resampling needs beyond the tile are always read',
  },
};

/** JSON Schema of the filter of a map. The area comes from the map tile, the collection from the path. */
const mapFilterQuery = {
  datetime: datetimeSchema({ periods: true }),
  minCloud: filterQuery.minCloud,
  maxCloud: filterQuery.maxCloud,
  minCoverage: filterQuery.minCoverage,
  source: filterQuery.source,
  platform: text,
};

type MapQuery = RenderParams & FilterParams;

interface MosaicQuery {
  pixel_selection?: PixelSelection;
  /** Margin around a map tile, pixels. */
  buffer?: number;
}

const RENDER_PARAM_NAMES = Object.keys(renderQuery) as (keyof RenderParams)[];

/** Only the render options, in a fixed order, so that equal options are equal as text. */
function renderParams(query: RenderParams): RenderParams {
  return Object.fromEntries(RENDER_PARAM_NAMES.map((name) => [name, query[name]]));
}

/** Formats by their names in URLs. */
const FORMATS: Record<string, ImageFormat> = { png: 'png', webp: 'webp', jpg: 'jpeg', jpeg: 'jpeg' };
const FORMAT_NAMES = Object.keys(FORMATS);
const ASK_FOR = `ask for ${FORMAT_NAMES.slice(0, -1).join(', ')} or ${FORMAT_NAMES.at(-1)}`;

const CONTENT_TYPES: Record<ImageFormat, string> = {
  png: 'image/png',
  webp: 'image/webp',
  jpeg: 'image/jpeg',
};

/** Width and height of a map tile. */
const TILE_SIDE_PIXELS = 256;

const describe = describeWithTag('maps');

export const mapRoutes: RouteGroup = async (server, { services }) => {
  const { storage, finder, imagery } = services;
  const picture = {
    200: fileResponse('The picture', ...Object.values(CONTENT_TYPES)),
    206: fileResponse('The requested range', ...Object.values(CONTENT_TYPES)),
    304: emptyResponse('The client has this picture'),
  };

  const mapTile = async (
    request: FastifyRequest<{ Params: TileAddress; Querystring: MapQuery & MosaicQuery }>,
    reply: FastifyReply,
    format: ImageFormat | undefined,
  ) => {
    const { query, params } = request;
    const { tile, size } = mapTileOf(params);
    const picture = await imagery.mapTile({
      collection: await requireCollection(storage, params.collection),
      filter: filterOf(query),
      source: sourceOf(query),
      renderParams: renderParams(query),
      tile,
      size,
      buffer: query.buffer,
      pixelSelection: query.pixel_selection,
      format,
      signal: untilDisconnected(reply),
    });
    return sendPicture(request, reply, picture);
  };

  server.get<{ Params: TileAddress & { format: string }; Querystring: MapQuery & MosaicQuery }>(
    '/xyz/:collection/:z/:x/:y.:format',
    describe(
      'A map tile (WebMercatorQuad) of a collection as png, webp or jpg; {y}@2x doubles its width and height in pixels',
      picture,
      { querystring: closedObject({ ...mapFilterQuery, ...renderQuery, ...mosaicQuery }) },
    ),
    async (request, reply) => mapTile(request, reply, formatOf('map tile', request.params.format)),
  );

  server.get<{ Params: TileAddress; Querystring: MapQuery & MosaicQuery & FormatQuery }>(
    '/xyz/:collection/:z/:x/:y',
    describe(
      'A map tile in the format of the parameter `format`; by default png if part of the tile is transparent, else jpeg',
      picture,
      { querystring: closedObject({ ...mapFilterQuery, ...renderQuery, ...mosaicQuery, ...formatQuery }) },
    ),
    async (request, reply) => mapTile(request, reply, FORMATS[request.query.format ?? '']),
  );

  server.get<{
    Params: { collection: string };
    Querystring: MapQuery & MosaicQuery & { tile_format: string; tile_scale: number };
  }>(
    '/xyz/:collection/tilejson.json',
    describe(
      'TileJSON 3.0.0 of a collection; its parameters are those of the map tiles',
      { 200: jsonResponse('TileJson', 'Where the map tiles are') },
      {
        querystring: closedObject({
          ...mapFilterQuery,
          ...renderQuery,
          ...mosaicQuery,
          tile_format: { enum: FORMAT_NAMES, default: 'png' },
          tile_scale: { type: 'integer', minimum: 1, maximum: 2, default: 1 },
        }),
      },
    ),
    async (request) => {
      const { query } = request;
      // The tiles refuse a filter that cannot be used, so this document refuses it too.
      filterOf(query);
      const collection = await requireCollection(storage, request.params.collection);
      const extent = await imagery.mapExtent({
        collection,
        source: sourceOf(query),
        renderParams: renderParams(query),
        size: query.tile_scale * TILE_SIDE_PIXELS,
        buffer: query.buffer,
      });
      if (!extent) throw resourceNotFound(`tile in collection ${collection.id}`);
      const carried = requestUrl(request).searchParams;
      for (const name of ['tile_format', 'tile_scale', 'f']) carried.delete(name);
      const tail = `${query.tile_scale === 2 ? '@2x' : ''}.${query.tile_format}`;
      const search = carried.size > 0 ? `?${carried}` : '';
      const address = `${baseUrl(request)}/xyz/${encodeURIComponent(collection.id)}`;
      return {
        tilejson: '3.0.0',
        name: collection.title,
        attribution: attributionFor(collection, extent.start, extent.end),
        scheme: 'xyz',
        tiles: [`${address}/{z}/{x}/{y}${tail}${search}`],
        minzoom: extent.minZoom,
        maxzoom: extent.maxZoom,
        bounds: extent.bounds,
        center: extent.center,
        colour_scale: extent.colourScale,
        ...partialMembers(extent),
      };
    },
  );

  const preview = async (
    request: FastifyRequest<{ Params: { itemId: string }; Querystring: MapQuery }>,
    reply: FastifyReply,
    format: ImageFormat | undefined,
  ) => {
    const { itemId } = request.params;
    const tile = await finder.get(itemId);
    if (!tile) throw resourceNotFound(`item ${itemId}`);
    const signal = untilDisconnected(reply);
    return sendPicture(
      request,
      reply,
      await imagery.preview(tile, renderParams(request.query), format, { signal }),
    );
  };

  server.get<{ Params: { itemId: string; format: string }; Querystring: MapQuery }>(
    '/preview/:itemId.:format',
    describe('A tile as a picture of its cell, at most 512 pixels wide or high, including clouds', picture, {
      querystring: closedObject(renderQuery),
    }),
    async (request, reply) => preview(request, reply, formatOf('preview', request.params.format)),
  );

  server.get<{ Params: { itemId: string }; Querystring: MapQuery & FormatQuery }>(
    '/preview/:itemId',
    describe(
      'A preview in the format of the parameter `format`; by default png if part of the preview is transparent, else jpeg',
      picture,
      { querystring: closedObject({ ...renderQuery, ...formatQuery }) },
    ),
    async (request, reply) => preview(request, reply, FORMATS[request.query.format ?? '']),
  );
};

interface TileAddress {
  collection: string;
  z: string;
  x: string;
  y: string;
}

interface FormatQuery {
  format?: string;
}

const formatQuery = { format: { enum: FORMAT_NAMES } };

function formatOf(what: string, name: string): ImageFormat {
  if (!Object.hasOwn(FORMATS, name)) throw resourceNotFound(`${what} as ${name}: ${ASK_FOR}`);
  return FORMATS[name];
}

/** Zoom, column and row of a map tile, and its width in pixels. Throws TW_IMAGERY_NO_MAP_TILE. */
function mapTileOf({ z, x, y }: TileAddress) {
  const [, row, twice] = /^(.*?)(@2x)?$/.exec(y)!;
  const numbers = [z, x, row].map(parseTileNumber);
  if (numbers.some(Number.isNaN)) throw noMapTile(z, x, row);
  return {
    tile: { z: numbers[0], x: numbers[1], y: numbers[2] },
    size: twice ? 2 * TILE_SIDE_PIXELS : TILE_SIDE_PIXELS,
  };
}

/** Returns NaN for a text that is not a decimal number. */
const parseTileNumber = (text: string) => (/^\d{1,9}$/.test(text) ? Number(text) : NaN);

/** Default: raw tiles. */
const sourceOf = ({ source = 'raw' }: FilterParams) => parseSource(source);

/** `datetime` may be a day without a time. */
function filterOf({ datetime, minCloud, maxCloud, minCoverage, platform, ...query }: FilterParams): Filter {
  const params = { datetime, minCloud, maxCloud, minCoverage, source: sourceOf(query), platform };
  return parseFilter(params, { periods: true });
}

/**
 * Sends a picture or a range of it. The ETag is its digest, because each ingest can change the picture. GDAL opens a picture over HTTP
 * only if the server supports ranges.
 */
function sendPicture(request: FastifyRequest, reply: FastifyReply, { bytes, format }: EncodedImage) {
  const etag = `"${createHash('sha1').update(bytes).digest('base64url')}"`;
  reply.header('accept-ranges', 'bytes').header('cache-control', 'public, max-age=60');
  if (notModified(request, reply, etag)) return reply.send();
  reply.type(CONTENT_TYPES[format]);
  const read = (start: number, end: number) => Readable.from([bytes.subarray(start, end + 1)]);
  return sendRanged(request, reply, { etag, bytes: bytes.length, read });
}
