import type { FastifyRequest } from 'fastify';
import { badRequest } from '../errors.js';

declare module 'fastify' {
  interface FastifyInstance {
    /** Base of all links, without a trailing slash. If undefined, links use the host of the request. */
    publicUrl: string | undefined;
  }
}

/**
 * The address by which the client reached the server, without a trailing slash. Links in answers start with it. It is the public URL
 * of the server, if it has one. Otherwise it comes from the header Host, or from `X-Forwarded-*` of a trusted proxy.
 */
export function baseUrl(request: FastifyRequest): string {
  if (request.forwardedBaseUrl !== undefined) return request.forwardedBaseUrl;
  const { publicUrl } = request.server;
  if (publicUrl !== undefined) return publicUrl;
  const { host } = request;
  const protocol = request.protocol.toLowerCase();
  const base = `${protocol}://${host}`;
  if (!/^[\w.-]+(:\d+)?$|^\[[\da-f:.]+\](:\d+)?$/i.test(host) || !URL.canParse(base))
    throw badRequest(`the header Host is not a valid host: ${host}`);
  if (protocol !== 'http' && protocol !== 'https')
    throw badRequest(`the header X-Forwarded-Proto is neither http nor https: ${protocol}`);
  return base;
}

/** Path and query of the request. Removes the host of an absolute request target, because only the header Host was checked. */
export function requestPath(request: FastifyRequest): string {
  const path = request.url.replace(/^[a-z][a-z\d+.-]*:\/\/[^/?]*/i, '');
  return path.startsWith('/') ? path : `/${path}`;
}

/**
 * Target of the redirect of a page that was requested with a trailing slash, relative to the path of the request: relative links of the
 * page need the path without a slash. Undefined for a path without a trailing slash.
 */
export function withoutTrailingSlash(request: FastifyRequest): string | undefined {
  const [, path, query = ''] = /^(\/[\w-]+)\/+(\?.*)?$/.exec(requestPath(request)) ?? [];
  return path === undefined ? undefined : `..${path}${query}`;
}

/** The requested address, as clients see it. */
export function requestUrl(request: FastifyRequest): URL {
  return new URL(baseUrl(request) + requestPath(request));
}
