/** A link of a document, by default to JSON. */
export const link = (rel: string, href: string, type = 'application/json') => ({ rel, type, href });
