/** The API reference as an HTML page, generated from the OpenAPI document. */
import type { FastifyInstance } from 'fastify';
import { type Html, html } from '../../../html/index.js';
import { withoutTrailingSlash } from '../../http/index.js';
import { fileResponse } from '../../schemas/index.js';

interface Operation {
  summary?: string;
  tags?: string[];
  parameters?: { in: string; name: string }[];
}

const METHODS = ['get', 'post', 'put', 'delete'] as const;

export async function serviceDocRoutes(server: FastifyInstance): Promise<void> {
  server.get(
    '/docs',
    {
      schema: {
        summary: 'API reference as an HTML page',
        tags: ['operations'],
        response: { 200: fileResponse('A page', 'text/html') },
      },
    },
    async (request, reply) => {
      const address = withoutTrailingSlash(request);
      if (address) return reply.redirect(address, 308);
      reply.type('text/html; charset=utf-8');
      return page(server.swagger().paths as Record<string, Record<string, Operation>>);
    },
  );
}

function page(paths: Record<string, Record<string, Operation>>): string {
  const rows = Object.entries(paths).flatMap(([path, operations]) =>
    METHODS.flatMap((method) => {
      const operation = operations[method];
      return operation ? [row(method, path, operation)] : [];
    }),
  );
  return html`<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>tilewright API</title>
<style>
  body { font: 16px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem; }
  td, th { text-align: left; vertical-align: top; padding: .3rem 1rem .3rem 0; border-bottom: 1px solid #ddd; }
  code { white-space: nowrap; }
</style>
<h1>tilewright API</h1>
<p>A STAC API with tile files, jobs and models. <a href="./">Landing page</a>, <a href="openapi.json">OpenAPI document</a>,
<a href="queryables">properties that filters support</a>.</p>
<table>
<tr><th>Request</th><th>Description</th><th>Parameters</th></tr>
${rows}</table>
</html>
`.markup;
}

function row(method: string, path: string, { summary = '', parameters = [] }: Operation): Html {
  const names = parameters.filter((one) => one.in === 'query').map((one) => one.name);
  return html`<tr><td><code>${method.toUpperCase()} ${path}</code></td><td>${summary}</td><td>${names.join(', ')}</td></tr>
`;
}
