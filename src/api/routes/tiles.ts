/** Tile files and single bands of them. Byte ranges let GDAL and QGIS read them in place. */
import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { Readable } from 'node:stream';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { buildSingleBandCog, SINGLE_BAND_FORMAT } from '../../imagery/index.js';
import type { AssembledFile, ImageFile } from '../../raster/index.js';
import { filesOfGroups, type GroupRecord, type TileRecord } from '../../storage/index.js';
import { checkIfMatch, notModified, onDisconnect, sendRanged } from '../answers.js';
import { resourceNotFound, tileDamaged } from '../errors.js';
import { describeWithTag, emptyResponse, fileResponse } from '../schemas/openapi.js';
import type { RouteGroup } from '../services.js';

/** Reads the bytes from `start` up to and including `end` of a file of new bytes and of ranges of the file at `path`. */
async function* readAssembled(
  path: string,
  { head, ranges }: AssembledFile,
  start: number,
  end: number,
): AsyncGenerator<Buffer> {
  if (start < head.length) yield head.subarray(start, end + 1);
  let position = head.length;
  for (const range of ranges) {
    const from = Math.max(start, position);
    const to = Math.min(end, position + range.bytes - 1);
    if (from <= to) {
      const offset = range.start - position;
      yield* createReadStream(path, { start: from + offset, end: to + offset });
    }
    position += range.bytes;
  }
}

const TIFF = 'image/tiff; application=geotiff; profile=cloud-optimized';

const describe = describeWithTag('tiles');

/** The ETag is the version of the tile, because the files of a version never change; files that the program makes have its format too. */
export const tileRoutes: RouteGroup = async (server, { services }) => {
  const { storage, finder } = services;
  const response = {
    200: fileResponse('The file', TIFF),
    206: fileResponse('The requested range', TIFF),
    304: emptyResponse('The client has this version'),
  };

  /** Keeps the file of a band group until the answer is sent, and returns the group's image. Throws TW_API_TILE_FILE. */
  const pinImage = async (tile: TileRecord, group: GroupRecord, reply: FastifyReply): Promise<ImageFile> => {
    const release = await storage.pinFiles(tile, [group]);
    onDisconnect(reply, release);
    const image = storage.tileImage(tile, group.name);
    const size = await stat(image.path).then(
      (file) => file.size,
      () => undefined,
    );
    const [file] = filesOfGroups(tile, [group]);
    if (size !== file?.bytes) throw tileDamaged(`the file ${tile.id}/${group.name}.tif`);
    return image;
  };

  /** Sends the file of a band group, or of one band of the group. */
  const send = async (
    request: FastifyRequest,
    reply: FastifyReply,
    { itemId, group: groupName, band: bandName }: { itemId: string; group: string; band?: string },
  ): Promise<FastifyReply> => {
    const tile = await finder.get(itemId);
    const group = tile?.groups.find((one) => one.name === groupName);
    const band = group?.bands.findIndex((one) => one.name === bandName) ?? -1;
    if (!tile || !group || (bandName !== undefined && band < 0))
      throw resourceNotFound(
        `tile file ${[itemId, groupName, ...(bandName === undefined ? [] : [bandName])].join('/')}.tif`,
      );
    const isStored = bandName === undefined || group.bands.length === 1;
    const etag = `"${tile.version}${isStored ? '' : `-${SINGLE_BAND_FORMAT}`}"`;
    checkIfMatch(request, etag);
    reply.header('accept-ranges', 'bytes').header('cache-control', 'public, max-age=60');
    if (notModified(request, reply, etag)) return reply.send();
    const image = await pinImage(tile, group, reply);
    reply.type(TIFF);
    const { path, bytes } = image;
    if (isStored) {
      const read = (start: number, end: number) =>
        createReadStream(path, { start: image.start + start, end: image.start + end });
      return sendRanged(request, reply, { etag, bytes, read });
    }
    const file = buildSingleBandCog(tile, group, band, image);
    const read = (start: number, end: number) => Readable.from(readAssembled(path, file, start, end));
    return sendRanged(request, reply, { etag, bytes: file.bytes, read });
  };

  server.get<{ Params: { itemId: string; group: string } }>(
    '/tiles/:itemId/:group.tif',
    describe('A band group of a tile as Cloud Optimized GeoTIFF', response),
    async (request, reply) => send(request, reply, request.params),
  );

  server.get<{ Params: { itemId: string; group: string; band: string } }>(
    '/tiles/:itemId/:group/:band.tif',
    describe('One band of a tile as Cloud Optimized GeoTIFF', response),
    async (request, reply) => send(request, reply, request.params),
  );
};
