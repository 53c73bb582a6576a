/** Compresses JSON and text with brotli or gzip for clients that accept it (RFC 9110, section 12.5.3), in threads of zlib. */
import { pipeline, type Readable } from 'node:stream';
import { promisify } from 'node:util';
import { brotliCompress, constants, createBrotliCompress, createGzip, gzip } from 'node:zlib';
import type { FastifyInstance } from 'fastify';

type Encoding = 'br' | 'gzip';

/** A shorter answer fits into one or two packets uncompressed. */
const MIN_BYTES = 1024;

/** Images and tile files are compressed already, and compression would delay the events of event streams. */
const COMPRESSIBLE = /^(application\/([\w.-]+\+)?json|text\/(plain|html|css|javascript))(;|$)/;

/** Quality 4 of brotli takes as long as gzip, and its output is smaller; the default, 11, takes a hundred times as long. */
const BROTLI_QUALITY = 4;

const brotliOptions = (bytes: number) => ({
  params: {
    [constants.BROTLI_PARAM_QUALITY]: BROTLI_QUALITY,
    [constants.BROTLI_PARAM_SIZE_HINT]: bytes,
    [constants.BROTLI_PARAM_MODE]: constants.BROTLI_MODE_TEXT,
  },
});

const compressBytes: Record<Encoding, (bytes: Buffer) => Promise<Buffer>> = {
  br: (bytes) => promisify(brotliCompress)(bytes, brotliOptions(bytes.length)),
  gzip: (bytes) => promisify(gzip)(bytes),
};

const compressor: Record<Encoding, (bytes: number) => NodeJS.ReadWriteStream> = {
  br: (bytes) => createBrotliCompress(brotliOptions(bytes)),
  gzip: () => createGzip(),
};

/**
 * The encoding that the client prefers, brotli on a tie; undefined for no compression. `*` means gzip only: clients that
 * send it, such as pystac with custom headers, often cannot decode brotli.
 */
export function acceptedEncoding(header: string | undefined): Encoding | undefined {
  const weights = new Map<string, number>();
  for (const element of header?.split(',') ?? []) {
    const [name = '', ...parameters] = element.split(';').map((part) => part.trim().toLowerCase());
    const q = parameters.find((one) => one.startsWith('q='));
    weights.set(name, q === undefined ? 1 : Number(q.slice(2)) || 0);
  }
  const br = weights.get('br') ?? 0;
  const gz = weights.get('gzip') ?? weights.get('x-gzip') ?? weights.get('*') ?? 0;
  // Without a weight of its own, identity is acceptable, and any accepted encoding is preferred to it.
  if (Math.max(br, gz) === 0 || (weights.get('identity') ?? 0) > Math.max(br, gz)) return undefined;
  return br >= gz ? 'br' : 'gzip';
}

/**
 * Call this before the routes are registered, and after all hooks that read an answer. An answer to HEAD has the headers of the answer to
 * GET. ETags of compressible answers must be weak: the encodings of an answer have the same ETag and different bytes.
 */
export function registerCompression(server: FastifyInstance): void {
  server.addHook('onSend', async (request, reply, payload) => {
    if (request.routeOptions.config.internal || payload === null || payload === undefined) return payload;
    if (!COMPRESSIBLE.test(String(reply.getHeader('content-type') ?? ''))) return payload;
    const others = reply.getHeader('vary') === 'origin' ? 'origin, ' : '';
    reply.header('vary', `${others}accept-encoding`);
    const encoding = acceptedEncoding(request.headers['accept-encoding']);
    if (!encoding || reply.hasHeader('content-encoding') || reply.statusCode === 206) return payload;
    if (typeof payload === 'string' || Buffer.isBuffer(payload)) {
      const bytes = typeof payload === 'string' ? Buffer.from(payload) : payload;
      if (bytes.length < MIN_BYTES) return payload;
      reply.header('content-encoding', encoding);
      const compressed = await compressBytes[encoding](bytes);
      reply.header('content-length', compressed.length);
      return compressed;
    }
    const length = Number(reply.getHeader('content-length'));
    if (length < MIN_BYTES) return payload;
    reply.header('content-encoding', encoding).removeHeader('content-length');
    if (request.method === 'HEAD') return payload;
    const stream = compressor[encoding](length || 0);
    // Fastify reports an error of the stream.
    pipeline(payload as Readable, stream, () => {});
    return stream;
  });
}
