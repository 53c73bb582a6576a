/** `/docs`: the reference of the API, by Swagger UI from `/openapi.json`. Everything on the page comes from this server. */
import { readFile } from 'node:fs/promises';
import type { FastifyInstance } from 'fastify';

import {
  CSS,
  HTML,
  OPEN,
  pageFile,
  SCRIPT,
  sendPageFile,
  servePageFile,
  withoutTrailingSlash,
} from '../../http/index.js';
import { fileResponse } from '../../schemas/index.js';
import { document } from './document.js';
import { style } from './style.js';

export async function docsPageRoutes(server: FastifyInstance): Promise<void> {
  const page = pageFile(HTML, document);
  server.get(
    '/docs',
    {
      config: OPEN,
      schema: {
        summary: 'This API, for people',
        tags: ['operations'],
        response: { 200: fileResponse('A page', 'text/html') },
      },
    },
    async (request, reply) => {
      const address = withoutTrailingSlash(request);
      return address ? reply.redirect(address, 308) : sendPageFile(request, reply, page);
    },
  );
  const file = (address: string) => () => readFile(new URL(address), 'utf8');
  const swagger = (name: string) => file(import.meta.resolve(`@fastify/swagger-ui/static/${name}`));
  servePageFile(server, '/docs/page.css', CSS, async () => style);
  servePageFile(server, '/docs/page.js', SCRIPT, file(import.meta.resolve('./browser/page.js')));
  servePageFile(server, '/docs/swagger-ui.css', CSS, swagger('swagger-ui.css'));
  servePageFile(server, '/docs/swagger-ui-bundle.js', SCRIPT, swagger('swagger-ui-bundle.js'));
}
