/**
 * Building blocks of HTML reports: escaped markup, chart axes, number formats. Invariant: every text from outside is escaped, because only
 * `html` and `trusted` create markup. Imports no other folder.
 */

export * from './chart-scale.js';
export { Html, html, trusted } from './html.js';
export { htmlPage, htmlSection, PAGE_POLICY } from './html-page.js';
export { reportStyle } from './html-report-style.js';
export * from './number-format.js';
