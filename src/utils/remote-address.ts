/** True for the address of a file on a host: `http://`, `https://` or `s3://`. */
export const isRemoteAddress = (text: string): boolean => /^(https?|s3):\/\//i.test(text);
