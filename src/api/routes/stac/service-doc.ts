/** The API's description as a page for people, made of its OpenAPI document. */
import type { FastifyInstance } from 'fastify';
import { withoutTrailingSlash } from '../../http/base-url.js';
import { fileResponse } from '../../schemas/responses.js';

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
        summary: 'This API, for people',
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
  return `<!doctype html>
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
<a href="queryables">what filters can ask for</a>.</p>
<table>
<tr><th>Request</th><th>What it does</th><th>Parameters</th></tr>
${rows.join('\n')}
</table>
</html>
`;
}

function row(method: string, path: string, { summary = '', parameters = [] }: Operation): string {
  const names = parameters.filter((one) => one.in === 'query').map((one) => one.name);
  const request = `<code>${method.toUpperCase()} ${escaped(path)}</code>`;
  return `<tr><td>${request}</td><td>${escaped(summary)}</td><td>${escaped(names.join(', '))}</td></tr>`;
}

const escaped = (text: string) =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
