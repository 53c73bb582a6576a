/** Building blocks of reports: escaped markup, chart axes, number formats. */
export * from './format.js';
export { Html, html, trusted } from './html.js';
export { htmlPage } from './page.js';
export { PAGE_POLICY } from './policy.js';
export { reportStyle } from './report-style.js';
export * from './scale.js';
