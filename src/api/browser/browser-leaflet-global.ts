/// <reference lib="dom" />
/** Leaflet, which the page loads as a classic script before its modules. */
import type * as Leaflet from 'leaflet';

export const { L } = globalThis as unknown as { L: typeof Leaflet };
