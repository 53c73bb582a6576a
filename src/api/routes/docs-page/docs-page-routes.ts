/** `/docs`: the reference of the API, by Swagger UI from `/openapi.json`. Everything on the page comes from this server. */
import { readFile } from 'node:fs/promises';
import type { FastifyInstance } from 'fastify';
import { CSS, SCRIPT, servePage, servePageFile } from '../../http/index.js';
import { document } from './docs-page-document.js';
import { style } from './docs-page-style.js';

export async function docsPageRoutes(server: FastifyInstance): Promise<void> {
  servePage(server, '/docs', document, {
    summary: 'The documentation of this API as a page',
    tags: ['operations'],
  });
  const read = (url: string | URL) => readFile(new URL(url), 'utf8');
  const swagger = (name: string) => () => read(import.meta.resolve(`@fastify/swagger-ui/static/${name}`));
  servePageFile(server, '/docs/page.css', CSS, async () => style);
  servePageFile(server, '/docs/docs-page-script.js', SCRIPT, () =>
    read(new URL('./browser/docs-page-script.js', import.meta.url)),
  );
  servePageFile(server, '/docs/swagger-ui.css', CSS, swagger('swagger-ui.css'));
  servePageFile(server, '/docs/swagger-ui-bundle.js', SCRIPT, swagger('swagger-ui-bundle.js'));
}
