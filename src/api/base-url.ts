import type { FastifyRequest } from 'fastify';
import { badRequest } from './errors.js';

/** The address by which the client reached the server, without a slash at its end: links in answers start with it. */
export function baseUrl(request: FastifyRequest): string {
  if (request.door !== undefined) return request.door;
  const base = `${request.protocol}://${request.host}`;
  if (!/^[\w.-]+(:\d+)?$|^\[[\da-f:.]+\](:\d+)?$/i.test(request.host) || !URL.canParse(base))
    throw badRequest(`the header Host names no host: ${request.host}`);
  return base;
}

/** The address that was asked for. Of one that names a host itself only the path counts: the Host header is the one that was checked. */
export function requestUrl(request: FastifyRequest): URL {
  return new URL(request.url.replace(/^[a-z][a-z\d+.-]*:\/\/[^/?]*/i, ''), `${baseUrl(request)}/`);
}
