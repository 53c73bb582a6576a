import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { Readable } from 'node:stream';
import type { FastifyInstance } from 'fastify';
import { isKnown } from '../conditional.js';
import { notFound, rangeNotSatisfiable, tileDamaged } from '../errors.js';
import { bytes, empty } from '../schemas/answers.js';
import type { Services } from '../services.js';

const TIFF = 'image/tiff; application=geotiff; profile=cloud-optimized';

/** Tile files, with ranges so that GDAL, QGIS and others read them in place. A version never changes, so it is the ETag. */
export async function tileRoutes(
  server: FastifyInstance,
  { services }: { services: Services },
): Promise<void> {
  const { storage, finder } = services;

  server.get<{ Params: { itemId: string; group: string } }>(
    '/tiles/:itemId/:group.tif',
    {
      schema: {
        summary: 'A band group of a tile as Cloud Optimized GeoTIFF',
        tags: ['tiles'],
        response: {
          200: bytes('The file', TIFF),
          206: bytes('The range that was asked for', TIFF),
          304: empty('The client has this version'),
        },
      },
    },
    async (request, reply) => {
      const { itemId, group: name } = request.params;
      const tile = await finder.get(itemId);
      const group = tile?.groups.find((g) => g.name === name);
      if (!tile || !group) throw notFound(`tile file ${itemId}/${name}.tif`);
      const etag = `"${tile.version}"`;
      reply.header('accept-ranges', 'bytes').header('cache-control', 'public, max-age=60');
      if (isKnown(request, reply, etag)) return reply.send();

      const release = await storage.holdFiles(tile, [group]);
      reply.raw.once('close', release);
      const path = storage.tilePath(tile, name);
      const size = await stat(path).then(
        (file) => file.size,
        () => undefined,
      );
      if (size !== group.bytes) throw tileDamaged(`the file ${itemId}/${name}.tif`);
      reply.type(TIFF);
      const ifRange = request.headers['if-range'];
      // RFC 9110, section 14.2: ranges are for GET alone.
      const isRanged = request.method === 'GET' && (ifRange === undefined || ifRange === etag);
      const range = isRanged ? parseRange(request.headers.range, group.bytes) : null;
      if (range === 'unsatisfiable') {
        reply.header('content-range', `bytes */${group.bytes}`);
        throw rangeNotSatisfiable(request.headers.range ?? '', group.bytes);
      }
      const { start, end } = range ?? { start: 0, end: group.bytes - 1 };
      if (range) reply.code(206).header('content-range', `bytes ${start}-${end}/${group.bytes}`);
      reply.header('content-length', end - start + 1);
      // An empty stream: for no body at all, fastify would say that the length is 0.
      if (request.method === 'HEAD') return reply.send(Readable.from([]));
      return reply.send(createReadStream(path, { start, end }));
    },
  );
}

/** One range of RFC 9110 section 14; several ranges or another unit mean the whole file (null), as the RFC allows. */
function parseRange(
  header: string | undefined,
  size: number,
): { start: number; end: number } | 'unsatisfiable' | null {
  const match = /^bytes=(\d*)-(\d*)$/.exec(header ?? '');
  if (!match || (match[1] === '' && match[2] === '')) return null;
  if (match[1] === '') {
    const suffix = Number(match[2]);
    return suffix === 0 ? 'unsatisfiable' : { start: Math.max(0, size - suffix), end: size - 1 };
  }
  const start = Number(match[1]);
  const end = match[2] === '' ? size - 1 : Math.min(Number(match[2]), size - 1);
  if (match[2] !== '' && Number(match[2]) < start) return null;
  return start >= size ? 'unsatisfiable' : { start, end };
}
