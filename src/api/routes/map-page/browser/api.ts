/// <reference lib="dom" />
/** What the page asks the server for. Addresses are relative, so that it works behind a path of a proxy. */
import { request } from './access.js';

export interface Collection {
  id: string;
  title: string;
  extent: { temporal: { interval: [[string | null, string | null]] } };
  links: { rel: string }[];
}

export interface Item {
  id: string;
  bbox: [west: number, south: number, east: number, north: number];
  geometry: object;
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
  /** From the earliest date on; null where a band holds no data. */
  spectra: { datetime: string; sensor: number; values: (number | null)[] }[];
}

/** Which tiles, as the parameters of a search name it. */
export type Filter = { datetime?: string; maxCloud?: number };

/** The answer to a question, with a body or without. Throws what the server says is wrong, and TokenRequired. */
export async function ask<T>(path: string, signal: AbortSignal, body?: object): Promise<T> {
  const post = body && {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  };
  const response = await request(path, { signal, ...post });
  const answer = await response.json();
  if (!response.ok) throw new Error(answer.detail ?? `${path} answers ${response.status}`);
  return answer as T;
}

/** A filter for searches, which want times with their days. */
export function toSearchFilter({ datetime, ...others }: Filter): Filter {
  if (!datetime) return others;
  const [from, to] = datetime.split('/');
  const start = from === '..' ? from : `${from}T00:00:00Z`;
  const end = to === '..' ? to : `${to}T23:59:59.999Z`;
  return { ...others, datetime: `${start}/${end}` };
}
