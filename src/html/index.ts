/**
 * Building blocks of HTML reports: escaped markup, chart axes, number formats. Invariant: every text from outside is escaped, because only
 * `html` and `trusted` create markup. Imports no other folder.
 */

export { Html, html, trusted } from './html.js';
export * from './html-chart-scale.js';
export * from './html-number-format.js';
export { htmlPage } from './html-page.js';
export { PAGE_POLICY } from './html-page-policy.js';
export { reportStyle } from './html-report-style.js';
