/** Content-Security-Policy of a self-contained page without scripts. */
export const PAGE_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'";
