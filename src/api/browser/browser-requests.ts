/// <reference lib="dom" />
/** Requests to the server. URLs are relative, so that the page works behind a proxy that adds a path. */
import type { GeoJsonObject } from 'geojson';
import { request } from './browser-access-token.js';

export interface Collection {
  id: string;
  title: string;
  extent: { temporal: { interval: [[string | null, string | null]] } };
  links: { rel: string }[];
}

export interface Item {
  id: string;
  bbox: [west: number, south: number, east: number, north: number];
  geometry: GeoJsonObject;
  properties: Record<string, unknown>;
  assets: Record<string, { roles: string[]; 'eo:bands'?: { name: string; common_name?: string }[] }>;
}

export interface SearchAnswer {
  features: Item[];
  numberMatched?: number;
}

export interface TileJson {
  attribution?: string;
  bounds: [west: number, south: number, east: number, north: number];
  center: [lon: number, lat: number, zoom: number];
  minzoom: number;
  maxzoom: number;
  colour_scale?: { low: number; high: number; colours: string[] };
}

export interface Series {
  series: { datetime: string; value: number | null }[];
}

export interface Spectra {
  /** Wavelengths in nm. */
  sensors: { bands: { wavelength: number; bad_band?: boolean }[] }[];
  /** The earliest date first. A value is null if the band has no data. */
  spectra: { datetime: string; sensor: number; values: (number | null)[] }[];
}

/** A filter of tiles, with the parameters of a search. */
export type Filter = { datetime?: string; maxCloud?: number };

/** Sends GET, or POST if there is a body, and returns the answer. Throws the error of the server, and TokenRequired. */
export async function ask<T>(path: string, signal: AbortSignal, body?: object): Promise<T> {
  const post = body && {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  };
  const response = await request(path, { signal, ...post });
  const answer = await response.json();
  if (!response.ok) throw new Error(answer.detail ?? `${path} answered ${response.status}`);
  return answer as T;
}

/** The filter for searches, whose `datetime` needs times as well as days. */
export function toSearchFilter({ datetime, ...others }: Filter): Filter {
  if (!datetime) return others;
  const [from, to] = datetime.split('/');
  const start = from === '..' ? from : `${from}T00:00:00Z`;
  const end = to === '..' ? to : `${to}T23:59:59.999Z`;
  return { ...others, datetime: `${start}/${end}` };
}
