/** Answers requests without a route. For a known path, 405 lists the supported methods (RFC 9110, section 15.5.6). */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { methodNotAllowed, resourceNotFound } from '../errors.js';

interface Path {
  pattern: RegExp;
  methods: Set<string>;
}

/** Answers 405 with `Allow` if the path is known, else 404. Call this before the routes are registered. */
export function registerNotFound(server: FastifyInstance): void {
  const paths = new Map<string, Path>();
  server.addHook('onRoute', ({ url, method }) => {
    if (url.includes('*')) return;
    const path = paths.get(url) ?? { pattern: patternOf(url), methods: new Set(['OPTIONS']) };
    for (const one of [method].flat()) path.methods.add(one);
    paths.set(url, path);
  });
  const refuse = (request: FastifyRequest, reply: FastifyReply): never => {
    const [asked] = request.url.split('?');
    const methods = new Set<string>();
    for (const path of paths.values())
      if (path.pattern.test(asked)) for (const method of path.methods) methods.add(method);
    // The router refuses some addresses that the pattern of a route matches, such as an empty extension: the method is not at fault.
    if (methods.size === 0 || methods.has(request.method))
      throw resourceNotFound(`route ${request.method} ${asked}`);
    const allow = [...methods].sort().join(', ');
    reply.header('allow', allow);
    throw methodNotAllowed(request.method, asked, allow);
  };
  // This comes before fastify checks the body, which it requires for some methods.
  server.addHook('preParsing', async (request, reply) => {
    if (request.is404) refuse(request, reply);
  });
  server.setNotFoundHandler(refuse);
}

/** `/tiles/:itemId/:group.tif` as a regular expression. */
function patternOf(url: string): RegExp {
  const parts = url.split(/:\w+/).map((text) => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'));
  return new RegExp(`^${parts.join('[^/]+')}/?$`);
}
