/** What reports are made of: markup that data cannot break, axes of charts, and numbers as people read them. Used by every report. */
export * from './format.js';
export { Html, html, trusted } from './html.js';
export * from './scale.js';
