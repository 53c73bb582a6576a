/** Which credentials belong to which hosts and buckets, read from a file, from `.netrc` and from the environment. */
import { readFile, stat } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { Ajv } from 'ajv';
import { messageOf } from '../errors.js';
import { parseJsonOr } from '../utils/json-text.js';
import { badCredentials } from './errors.js';

interface Login {
  login: string;
  password: string;
}

/**
 * Reads `.netrc`, the file of user names and passwords of curl, GDAL and NASA's tools. Returns the logins by machine. Ignores `default`,
 * which would send a password to any host, and macros.
 */
export function parseNetrc(text: string): Map<string, Login> {
  const logins = new Map<string, Login>();
  // A macro ends with an empty line.
  const words = text
    .replace(/^\s*macdef\b[\s\S]*?(?:\n\s*\n|$(?![\s\S]))/gm, '')
    .replace(/^\s*#.*$/gm, '')
    .split(/\s+/)
    .filter(Boolean);
  let machine: string | undefined;
  let entry: Partial<Login> = {};
  const end = () => {
    const { login, password } = entry;
    if (machine !== undefined && login !== undefined && password !== undefined && !logins.has(machine))
      logins.set(machine, { login, password });
  };
  for (let i = 0; i < words.length; i++) {
    const word = words[i];
    if (word === 'machine' || word === 'default') {
      end();
      entry = {};
      machine = word === 'machine' ? words[++i]?.toLowerCase() : undefined;
    } else if (word === 'login' || word === 'password') entry[word] = words[++i];
    else if (word === 'account') i++;
  }
  end();
  return logins;
}

/** A token that is sent as `Authorization: Bearer`. Hosts are `host`, `host:port` or `*.domain`. */
interface BearerRule {
  hosts: string[];
  token: string;
}

/** Files in Azure's object store whose addresses are signed with a token of `tokenUrl/ACCOUNT/CONTAINER`. */
export interface SasRule {
  hosts: string[];
  tokenUrl: string;
  /** Host of the catalogs whose files are signed; all catalogs if absent. */
  catalog?: string;
}

/** How the objects of buckets are read. Without keys, they come from the credential chain of the AWS tools. */
export interface S3Rule {
  /** Names of buckets; all if absent. */
  buckets?: string[];
  endpoint?: string;
  region?: string;
  accessKeyId?: string;
  secretAccessKey?: string;
  sessionToken?: string;
  profile?: string;
  requesterPays?: boolean;
  /** False for requests without a signature. */
  sign?: boolean;
}

export interface CredentialRules {
  bearer: BearerRule[];
  sas: SasRule[];
  s3: S3Rule[];
  /** By host. */
  logins: Map<string, Login>;
}

/** The signing service of Planetary Computer is public, and signs only files of its own catalog. */
const PLANETARY_COMPUTER: SasRule = {
  hosts: ['*.blob.core.windows.net'],
  tokenUrl: 'https://planetarycomputer.microsoft.com/api/sas/v1/token',
  catalog: 'planetarycomputer.microsoft.com',
};

const EARTHDATA_HOSTS = ['*.earthdata.nasa.gov', '*.earthdatacloud.nasa.gov'];

const textSchema = { type: 'string', minLength: 1, maxLength: 10_000 };
const namesSchema = { type: 'array', items: textSchema, minItems: 1 };
/** A list of rules with hosts and another member. */
const hostRules = (member: string) => ({
  type: 'array',
  items: {
    type: 'object',
    required: ['hosts', member],
    additionalProperties: false,
    properties: { hosts: namesSchema, [member]: textSchema },
  },
});

const FILE_SCHEMA = {
  type: 'object',
  additionalProperties: false,
  properties: {
    bearer: hostRules('token'),
    sas: hostRules('tokenUrl'),
    s3: {
      type: 'array',
      items: {
        type: 'object',
        required: ['buckets'],
        additionalProperties: false,
        dependencies: { accessKeyId: ['secretAccessKey'], secretAccessKey: ['accessKeyId'] },
        properties: {
          ...{
            buckets: namesSchema,
            endpoint: textSchema,
            region: textSchema,
            accessKeyId: textSchema,
            secretAccessKey: textSchema,
          },
          ...{ sessionToken: textSchema, profile: textSchema },
          ...{ requesterPays: { type: 'boolean' }, sign: { type: 'boolean' } },
        },
      },
    },
    netrc: textSchema,
  },
};

interface CredentialsFile {
  bearer?: BearerRule[];
  sas?: SasRule[];
  s3?: S3Rule[];
  /** Path of a `.netrc` file. */
  netrc?: string;
}

/**
 * Reads the rules. `environment`: that of a user's own process, which uses EARTHDATA_TOKEN, `.netrc` and the credentials of the AWS tools
 * for any bucket. A server uses only its file, because its users choose what it reads. Throws TW_REMOTE_CREDENTIALS.
 */
export async function readCredentialRules(
  file: string | undefined,
  environment: NodeJS.ProcessEnv | undefined,
): Promise<CredentialRules> {
  const given = file === undefined ? {} : await readRules(file);
  const netrc = given.netrc ?? environment?.NETRC;
  return {
    bearer: [...(given.bearer ?? []), ...bearerOf(environment)],
    sas: [...(given.sas ?? []), PLANETARY_COMPUTER],
    s3: [...(given.s3 ?? []), ...(environment ? [s3Of(environment)] : [])],
    logins:
      netrc !== undefined ? parseNetrc(await readText(netrc)) : environment ? await homeLogins() : new Map(),
  };
}

async function readRules(path: string): Promise<CredentialsFile> {
  // The reason of the parser quotes the text.
  const rules = parseJsonOr<unknown>(await readSecret(path), () => badCredentials(path, 'it is not JSON'));
  const ajv = new Ajv({ strict: false });
  if (!ajv.validate(FILE_SCHEMA, rules))
    throw badCredentials(path, ajv.errorsText(ajv.errors, { dataVar: 'the file' }));
  const file = rules as CredentialsFile;
  const addresses = [
    ...(file.sas ?? []).map(({ tokenUrl }) => tokenUrl),
    ...(file.s3 ?? []).map(({ endpoint }) => endpoint),
  ];
  if (addresses.some((address) => address !== undefined && !URL.canParse(address)))
    throw badCredentials(path, 'a tokenUrl or endpoint in it is not a URL');
  return file;
}

/** Bits of the mode by which others than the owner can read or write a file. */
const MODE_OF_OTHERS = 0o077;

/** Reads a file that only its owner can read. Messages never hold its text. */
async function readSecret(path: string): Promise<string> {
  const text = await readText(path);
  const { mode } = await stat(path);
  if (process.platform !== 'win32' && mode & MODE_OF_OTHERS)
    throw badCredentials(path, 'other users can read it; run chmod 600 on it');
  return text;
}

async function readText(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    throw badCredentials.because(error, path, messageOf(error));
  }
}

/** The logins of `~/.netrc`, which need not exist. */
async function homeLogins(): Promise<Map<string, Login>> {
  const path = join(homedir(), '.netrc');
  const exists = await stat(path).then(
    () => true,
    () => false,
  );
  return exists ? parseNetrc(await readText(path)) : new Map();
}

const bearerOf = (environment?: NodeJS.ProcessEnv): BearerRule[] =>
  environment?.EARTHDATA_TOKEN ? [{ hosts: EARTHDATA_HOSTS, token: environment.EARTHDATA_TOKEN }] : [];

/** The variables of the AWS tools and of GDAL. */
function s3Of(environment: NodeJS.ProcessEnv): S3Rule {
  const endpoint = environment.AWS_ENDPOINT_URL_S3 || environment.AWS_ENDPOINT_URL || undefined;
  return {
    endpoint,
    region: endpoint === undefined ? undefined : environment.AWS_REGION || environment.AWS_DEFAULT_REGION,
    requesterPays: environment.AWS_REQUEST_PAYER === 'requester',
    sign: !/^(yes|true|1)$/i.test(environment.AWS_NO_SIGN_REQUEST ?? ''),
  };
}
