/** Options of commands that fetch scenes from hosts. */
import { InvalidArgumentError, type Option } from 'commander';
import { createOption } from './option-groups.js';

/** Parses a comma-separated list, appended to those of earlier flags. */
export const appendList = (value: string, all: string[] | undefined): string[] => [
  ...(all ?? []),
  ...value.split(',').map((part) => part.trim()),
];

const HOST_FORM = 'It must be host, host:port or *.domain';

/** Parses hosts, appended to those of earlier flags. Another text would never match the host of an address, so it is refused. */
function appendHosts(value: string, all: string[] | undefined): string[] {
  const hosts = appendList(value, undefined);
  for (const host of hosts) checkHostForm(host);
  return [...(all ?? []), ...hosts];
}

function checkHostForm(text: string): void {
  const domain = text.startsWith('*.') ? text.slice(2) : undefined;
  const host = domain ?? text;
  const hasForm = /^([^\s/\\?#@:*[\]]+|\[[^\]]+\])(:\d+)?$/.test(host) && URL.canParse(`http://${host}`);
  // Hosts below a domain are allowed at the usual ports only.
  if (hasForm && !(domain !== undefined && /:\d+$/.test(domain))) return;
  const url = /^[a-z][a-z\d+.-]*:\/\//i.test(text) ? text : `http://${text}`;
  const found = URL.canParse(url) && text.includes('/') ? new URL(url).host : '';
  throw new InvalidArgumentError(
    found === '' || found.includes('*') ? `${HOST_FORM}.` : `${HOST_FORM}, here ${found}.`,
  );
}

const hostOptions = new WeakSet<Option>();

/** True for an option whose value in the config file can be a list, of which each text is parsed. */
export const isHostOption = (option: Option): boolean => hostOptions.has(option);

function createHostOption(description: string): Option {
  const option = createOption('--allow-host <host>', description).argParser(appendHosts);
  hostOptions.add(option);
  return option;
}

/** The hosts from which a server fetches. */
export const serverHostOption = (): Option =>
  createHostOption('host from which ingest may fetch scenes: host, host:port or *.domain; can be repeated');

/** The hosts from which a command fetches in addition to all public ones. `when` limits its effect, such as "with --run: ". */
export const allowHostOption = (when = ''): Option =>
  createHostOption(
    `${when}host that may be fetched from although its address is private or it has no TLS: host or host:port; can be repeated`,
  );

export const remoteCredentialsOption = (when = ''): Option =>
  createOption('--remote-credentials <file>', `${when}JSON file with credentials for the hosts of scenes`);
