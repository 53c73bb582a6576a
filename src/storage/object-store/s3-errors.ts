/** Errors of an S3 server and of the AWS SDK, as errors that a user can act on. They contain no secrets. */
import { TilewrightError } from '../../errors.js';
import { describeSystemError } from '../../utils/system-errors.js';
import { storeCorrupt, storeDenied, storeFull, storeIo, storeNotFound, storeUnavailable } from '../errors.js';
import { isTransient, type S3Failure, statusOf } from './s3-retry.js';

const FULL = ['XMinioStorageFull', 'QuotaExceeded', 'InsufficientCapacity', 'InsufficientStorage'];

interface S3Location {
  url: string;
  bucket: string;
  /** Origin of the requests so far. */
  endpoint: string;
}

/** A response to HEAD has no body, so servers report only `NotFound`. */
const ABSENT = ['NoSuchKey', 'NotFound'];
/** Some have another status than 403. */
const DENIED = [
  'AccessDenied',
  'InvalidAccessKeyId',
  'SignatureDoesNotMatch',
  'InvalidToken',
  'ExpiredToken',
  'XAdminUserNotFound',
];

export const isMissingObject = (error: unknown) => ABSENT.includes((error as Error).name);

export function isDenied(error: unknown): boolean {
  return DENIED.includes((error as Error).name) || [401, 403].includes(statusOf(error as S3Failure));
}

/** `what` names the object or the operation, `credentials` says which were used. */
export function asS3Error(error: unknown, location: S3Location, what: string, credentials: string): unknown {
  if (error instanceof TilewrightError || !(error instanceof Error)) return error;
  const { url, bucket, endpoint } = location;
  const status = statusOf(error);
  const text = [...new Set([error.name, status || '', error.message])].filter(Boolean).join(' ');
  if (error.name === 'CredentialsProviderError')
    return storeDenied.because(
      error,
      url,
      'no credentials were found; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE',
    );
  if (isDenied(error))
    return storeDenied.because(
      error,
      url,
      `${endpoint} answered ${text} to ${credentials}; check them and what they allow`,
    );
  if (error.name === 'NoSuchBucket')
    return storeNotFound.because(error, url, `bucket ${bucket} at ${endpoint}; make it first`);
  if (isMissingObject(error)) return storeNotFound.because(error, url, `object ${what}`);
  if (status === 507 || FULL.includes(error.name)) return storeFull.because(error, url);
  if (error.name === 'BadDigest')
    return storeCorrupt.because(error, what, url, 'its bytes changed on the way');
  if ((error as NodeJS.ErrnoException).code === 'ERR_INVALID_URL')
    return storeUnavailable.because(
      error,
      url,
      endpoint,
      'AWS_ENDPOINT_URL_S3 or the AWS profile does not have a URL such as https://s3.example.org',
    );
  if (isTransient(error)) return storeUnavailable.because(error, url, endpoint, reasonOf(error) ?? text);
  if (status === 301 || status === 307)
    return storeIo.because(error, url, what, `${text}; the bucket is in another region: set AWS_REGION`);
  return status ? storeIo.because(error, url, what, text) : error;
}

/** The reason in words; undefined for errors of the SDK. It names several errors of sockets `TimeoutError`, so its message says more. */
const reasonOf = (error: Error) => (error.name === 'TimeoutError' ? undefined : describeSystemError(error));

/** Name of the credentials that the SDK uses, from the marks that its providers leave. */
export function credentialsLabel(identity: object): string {
  const marks = '$source' in identity ? Object.keys(identity.$source as object) : [];
  if (marks.includes('CREDENTIALS_ENV_VARS'))
    return 'AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY of the environment';
  if (marks.some((mark) => mark.includes('PROFILE')))
    return `the AWS profile "${process.env.AWS_PROFILE ?? 'default'}"`;
  return 'the credentials that the AWS SDK has found on this machine';
}
