/** XYZ map tiles of a collection, TileJSON, and previews of single tiles. */
import { createHash } from 'node:crypto';
import { Readable } from 'node:stream';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { type EncodedImage, type ImageFormat, noMapTile } from '../../../imagery/index.js';
import {
  attributionFor,
  type Filter,
  type FilterParams,
  parseFilter,
  parseSource,
} from '../../../query/index.js';
import type { RouteGroup } from '../../api-services.js';
import { resourceNotFound } from '../../errors.js';
import { baseUrl, notModified, partialMembers, requestUrl, sendRanged } from '../../http/index.js';
import {
  closedObject,
  describeWithTag,
  emptyResponse,
  fileResponse,
  jsonResponse,
} from '../../schemas/index.js';
import { requireCollection } from '../stac/index.js';
import {
  type MapQuery,
  type MosaicQuery,
  mapFilterQuery,
  mosaicQuery,
  renderParams,
  renderQuery,
} from './map-routes-query.js';

/** Formats by their names in URLs. */
const FORMATS: Record<string, ImageFormat> = { png: 'png', webp: 'webp', jpg: 'jpeg', jpeg: 'jpeg' };
const FORMAT_NAMES = Object.keys(FORMATS);
const ASK_FOR = `ask for ${FORMAT_NAMES.slice(0, -1).join(', ')} or ${FORMAT_NAMES.at(-1)}`;

const TYPES: Record<ImageFormat, string> = { png: 'image/png', webp: 'image/webp', jpeg: 'image/jpeg' };

/** Width and height of a map tile. */
const TILE_SIDE_PIXELS = 256;

const describe = describeWithTag('maps');

export const mapRoutes: RouteGroup = async (server, { services }) => {
  const { storage, finder, imagery } = services;
  const picture = {
    200: fileResponse('The picture', ...Object.values(TYPES)),
    206: fileResponse('The requested range', ...Object.values(TYPES)),
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
    return sendPicture(request, reply, await imagery.preview(tile, renderParams(request.query), format));
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
  reply.type(TYPES[format]);
  const read = (start: number, end: number) => Readable.from([bytes.subarray(start, end + 1)]);
  return sendRanged(request, reply, { etag, bytes: bytes.length, read });
}
