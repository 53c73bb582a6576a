/**
 * Building blocks of HTML reports: escaped markup, chart axes, number formats. Invariant: every text from outside is escaped, because only
 * `html` and `trusted` create markup. Imports no other part.
 */
export * from './format.js';
export { Html, html, trusted } from './html.js';
export { htmlPage } from './page.js';
export { PAGE_POLICY } from './policy.js';
export { reportStyle } from './report-style.js';
export * from './scale.js';
