/** Finds the licence of an Item in its collection, where most archives say it. */
import { type HttpClient, linksOf, type RemoteItem, readDocument } from '../../remote/index.js';

export interface Licence {
  license?: string;
  /** Links with the relation `license`. */
  links: { rel: string; href: string }[];
}

/** Invariant: a collection is requested once. */
export class CollectionLicences {
  private readonly known = new Map<string, Promise<Licence>>();

  constructor(
    private readonly client: HttpClient,
    private readonly signal?: AbortSignal,
  ) {}

  /** The licence of the Item, or else that of its collection; empty if neither has one. Throws TW_REMOTE_... and TW_STAC_... */
  async of({ document, url }: RemoteItem): Promise<Licence> {
    const links = linksOf(document, url);
    const own = licenceOf(document, url, document.properties);
    if (own.license !== undefined || own.links.length > 0) return own;
    const href = links.find(({ rel }) => rel === 'collection')?.href;
    if (href === undefined || !/^https?:/.test(href)) return own;
    const known = this.known.get(href) ?? this.read(href);
    this.known.set(href, known);
    return known;
  }

  private async read(href: string): Promise<Licence> {
    const document = (await readDocument(this.client, href, { signal: this.signal })) ?? {};
    return licenceOf(document, href, document);
  }
}

function licenceOf(document: Record<string, unknown>, url: string, holder: unknown): Licence {
  const { license } = (holder ?? {}) as { license?: unknown };
  return {
    ...(typeof license === 'string' && { license }),
    links: linksOf(document, url)
      .filter(({ rel }) => rel === 'license')
      .map(({ rel, href }) => ({ rel, href })),
  };
}
