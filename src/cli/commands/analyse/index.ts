/**
 * `tilewright analyse`: a subcommand for each analysis. Invariant: help does not load `hyperspectral`. Imports files of a folder above, the
 * folders `options` and `output` and the parts `derive` (types), `html`, `hyperspectral` and `jobs` (types).
 */
import { Command } from 'commander';
import { classifyCommand } from './classify-command.js';
import { clusterCommand } from './cluster-spectra-command.js';
import { matchCommand } from './match-command.js';
import { continuumCommand, indicesCommand, resampleCommand, smoothCommand } from './spectra-commands.js';
import { anomalyCommand, mnfCommand, pcaCommand, statsCommand } from './statistics-commands.js';
import { unmixCommand } from './unmix-command.js';

const COMMANDS = [
  statsCommand,
  pcaCommand,
  mnfCommand,
  anomalyCommand,
  matchCommand,
  unmixCommand,
  clusterCommand,
  classifyCommand,
  indicesCommand,
  smoothCommand,
  resampleCommand,
  continuumCommand,
];

export function analyseCommand(): Command {
  const analyse = new Command('analyse').description(
    'analyse the spectra of a hyperspectral collection over all its tiles',
  );
  for (const make of COMMANDS) analyse.addCommand(make());
  return analyse;
}
