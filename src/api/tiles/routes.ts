/** Tile files, and single bands of them, with ranges so that GDAL, QGIS and others read them in place. */
import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { Readable } from 'node:stream';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { bandFileOf } from '../../imagery/index.js';
import type { GroupRecord, TileRecord } from '../../storage/index.js';
import { isKnown } from '../conditional.js';
import { notFound, tileDamaged } from '../errors.js';
import { bytes, empty } from '../schemas/answers.js';
import type { Services } from '../services.js';
import { readAssembled } from './assembled.js';
import { sendRanged } from './ranges.js';

const TIFF = 'image/tiff; application=geotiff; profile=cloud-optimized';

/** A version never changes, so it is the ETag. */
export async function tileRoutes(
  server: FastifyInstance,
  { services }: { services: Services },
): Promise<void> {
  const { storage, finder } = services;
  const tags = ['tiles'];
  const response = {
    200: bytes('The file', TIFF),
    206: bytes('The range that was asked for', TIFF),
    304: empty('The client has this version'),
  };

  /** The path of a group's file, which stays until the answer is sent. Throws TW_API_TILE_FILE. */
  const hold = async (tile: TileRecord, group: GroupRecord, reply: FastifyReply): Promise<string> => {
    const release = await storage.holdFiles(tile, [group]);
    reply.raw.once('close', release);
    const path = storage.tilePath(tile, group.name);
    const size = await stat(path).then(
      (file) => file.size,
      () => undefined,
    );
    if (size !== group.bytes) throw tileDamaged(`the file ${tile.id}/${group.name}.tif`);
    return path;
  };

  /** True if the client has this version of the tile. */
  const begin = (request: FastifyRequest, reply: FastifyReply, etag: string) => {
    reply.header('accept-ranges', 'bytes').header('cache-control', 'public, max-age=60');
    return isKnown(request, reply, etag);
  };

  server.get<{ Params: { itemId: string; group: string } }>(
    '/tiles/:itemId/:group.tif',
    { schema: { summary: 'A band group of a tile as Cloud Optimized GeoTIFF', tags, response } },
    async (request, reply) => {
      const { itemId, group: name } = request.params;
      const tile = await finder.get(itemId);
      const group = tile?.groups.find((g) => g.name === name);
      if (!tile || !group) throw notFound(`tile file ${itemId}/${name}.tif`);
      const etag = `"${tile.version}"`;
      if (begin(request, reply, etag)) return reply.send();
      const path = await hold(tile, group, reply);
      const read = (start: number, end: number) => createReadStream(path, { start, end });
      return sendRanged(request, reply.type(TIFF), { etag, bytes: group.bytes, read });
    },
  );

  server.get<{ Params: { itemId: string; group: string; band: string } }>(
    '/tiles/:itemId/:group/:band.tif',
    { schema: { summary: 'One band of a tile as Cloud Optimized GeoTIFF', tags, response } },
    async (request, reply) => {
      const { itemId, group: name, band: bandName } = request.params;
      const tile = await finder.get(itemId);
      const group = tile?.groups.find((g) => g.name === name);
      const band = group?.bands.findIndex((one) => one.name === bandName) ?? -1;
      if (!tile || !group || band < 0) throw notFound(`tile file ${itemId}/${name}/${bandName}.tif`);
      const etag = `"${tile.version}"`;
      if (begin(request, reply, etag)) return reply.send();
      const path = await hold(tile, group, reply);
      const file =
        group.bands.length > 1
          ? bandFileOf(tile, group, band, path)
          : { head: Buffer.alloc(0), ranges: [{ start: 0, bytes: group.bytes }], bytes: group.bytes };
      const read = (start: number, end: number) => Readable.from(readAssembled(path, file, start, end));
      return sendRanged(request, reply.type(TIFF), { etag, bytes: file.bytes, read });
    },
  );
}
