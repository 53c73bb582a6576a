/** `/map`: a page that shows collections on a map. All its resources come from this server. */
import { readFile } from 'node:fs/promises';
import type { FastifyInstance } from 'fastify';
import { CSS, SCRIPT, servePage, servePageFile } from '../../http/index.js';
import { document } from './map-page-document.js';
import { style } from './map-page-style.js';

/** Modules of the page, compiled with the server. */
const MODULES = [
  'leaflet-global',
  'map-page-access',
  'map-page-address',
  'map-page-band-styles',
  'map-page-chart',
  'map-page-graticule',
  'map-page-legend',
  'map-page-plot',
  'map-page-point-panel',
  'map-page-requests',
  'map-page-script',
  'map-page-spectrum',
];

export async function mapPageRoutes(server: FastifyInstance): Promise<void> {
  servePage(server, '/map', document, { summary: 'A page that shows collections on a map', tags: ['maps'] });
  const serve = (name: string, type: string, read: () => Promise<string>) =>
    servePageFile(server, `/map/${name}`, type, read);
  const file = (address: string) => () => readFile(new URL(address), 'utf8');
  const leaflet = (name: string) => file(import.meta.resolve(`leaflet/dist/${name}`));
  serve('page.css', CSS, async () => style);
  serve('leaflet.css', CSS, leaflet('leaflet.css'));
  serve('leaflet.js', SCRIPT, leaflet('leaflet.js'));
  for (const name of MODULES) serve(`${name}.js`, SCRIPT, file(import.meta.resolve(`./browser/${name}.js`)));
}
