/** Content-Security-Policy of a page without scripts that contains all it shows: the browser refuses everything else. */
export const PAGE_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'";
