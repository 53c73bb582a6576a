/** Options of commands that fetch scenes from hosts. */
import type { Option } from 'commander';
import { createOption } from './option-groups.js';

/** Parses a comma-separated list, appended to those of earlier flags. */
export const appendList = (value: string, all: string[] | undefined): string[] => [
  ...(all ?? []),
  ...value.split(',').map((part) => part.trim()),
];

export const remoteCredentialsOption = (): Option =>
  createOption('--remote-credentials <file>', 'JSON file with credentials for the hosts of scenes');
