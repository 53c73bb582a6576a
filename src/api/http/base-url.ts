import type { FastifyRequest } from 'fastify';
import { badRequest } from '../errors.js';

declare module 'fastify' {
  interface FastifyInstance {
    /** Base of all links, without a slash at its end. Undefined: links name the host that the request names. */
    publicUrl: string | undefined;
  }
}

/**
 * The address by which the client reached the server, without a slash at its end: links in answers start with it. It is the public URL
 * of the server, if that has one. Otherwise it follows from the header Host, or from `X-Forwarded-*` of a trusted proxy.
 */
export function baseUrl(request: FastifyRequest): string {
  if (request.forwardedBaseUrl !== undefined) return request.forwardedBaseUrl;
  const { publicUrl } = request.server;
  if (publicUrl !== undefined) return publicUrl;
  const { host } = request;
  const protocol = request.protocol.toLowerCase();
  const base = `${protocol}://${host}`;
  if (!/^[\w.-]+(:\d+)?$|^\[[\da-f:.]+\](:\d+)?$/i.test(host) || !URL.canParse(base))
    throw badRequest(`the header Host names no host: ${host}`);
  if (protocol !== 'http' && protocol !== 'https')
    throw badRequest(`the header X-Forwarded-Proto is neither http nor https: ${protocol}`);
  return base;
}

/** Path and query of the request. The host of an absolute request target is removed; only Host was checked. */
export function requestPath(request: FastifyRequest): string {
  const path = request.url.replace(/^[a-z][a-z\d+.-]*:\/\/[^/?]*/i, '');
  return path.startsWith('/') ? path : `/${path}`;
}

/**
 * The address of a page relative to the path of the request, if that ends with a slash: relative links of the page need it without.
 * Undefined otherwise.
 */
export function withoutTrailingSlash(request: FastifyRequest): string | undefined {
  const [, name, query = ''] = /^\/([\w-]+)\/+(\?.*)?$/.exec(requestPath(request)) ?? [];
  return name === undefined ? undefined : `../${name}${query}`;
}

/** The address that was asked for, as clients see it. */
export function requestUrl(request: FastifyRequest): URL {
  return new URL(baseUrl(request) + requestPath(request));
}
