/** Links and URLs that all kinds of STAC documents use. */
import type { CollectionRecord } from '../../storage/index.js';

export interface StacLink {
  rel: string;
  href: string;
  type?: string;
  title?: string;
}

export const extensionUrl = (name: string) => `https://stac-extensions.github.io/${name}/schema.json`;

/** A collection's attribution for data of these times: `[year]` becomes "2022" or "2015-2022". Unchanged if a time is unknown. */
export function attributionFor(
  { attribution }: CollectionRecord,
  start: number | null,
  end: number | null,
): string | undefined {
  if (start === null || end === null) return attribution;
  const [from, to] = [start, end].map((time) => new Date(time).getUTCFullYear());
  return attribution?.replaceAll('[year]', from === to ? `${from}` : `${from}-${to}`);
}

export function licenseLinks({ license, licenseUrl }: CollectionRecord): StacLink[] {
  return licenseUrl === undefined ? [] : [{ rel: 'license', href: licenseUrl, title: license }];
}

export type StacUrls = ReturnType<typeof stacUrls>;

/** URLs of the API. `baseUrl` may end with a slash. */
export function stacUrls(baseUrl: string) {
  const base = baseUrl.replace(/\/+$/, '');
  const collection = (id: string) => `${base}/collections/${encodeURIComponent(id)}`;
  const tile = (id: string) => `${base}/tiles/${encodeURIComponent(id)}`;
  const model = (id: string, version?: string) => {
    const all = `${base}/models/${encodeURIComponent(id)}`;
    return version === undefined ? all : `${all}/versions/${encodeURIComponent(version)}`;
  };
  return {
    root: `${base}/`,
    collection,
    item: (collectionId: string, id: string) => `${collection(collectionId)}/items/${encodeURIComponent(id)}`,
    xyz: (id: string) => `${base}/xyz/${encodeURIComponent(id)}`,
    preview: (id: string) => `${base}/preview/${encodeURIComponent(id)}.png`,
    tile,
    model,
    modelItem: ({ id, version }: { id: string; version: string }) => `${model(id, version)}/item`,
    bandFile: (id: string, group: string, band: string) =>
      `${tile(id)}/${encodeURIComponent(group)}/${encodeURIComponent(band)}.tif`,
    file: (id: string, group: string) => `${tile(id)}/${encodeURIComponent(group)}.tif`,
  };
}

export function isoTime(milliseconds: number): string {
  return new Date(milliseconds).toISOString();
}
