/** `npm run nightly` also runs the tests, and the rounds of tests, for which each change would wait too long. */
export const isNightly = process.env['TILEWRIGHT_NIGHTLY'] === '1';

/** The option `skip` of a test of the nightly run. */
export const onlyNightly = isNightly ? false : 'only in `npm run nightly`';
