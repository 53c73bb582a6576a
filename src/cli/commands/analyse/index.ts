/** `tilewright analyse`: a subcommand for each analysis. Invariant: help does not load `analysis`. Imports types of `analysis`. */
import { Command } from 'commander';
import { classifyCommand } from './classify.js';
import { clusterCommand } from './cluster.js';
import { matchCommand } from './match.js';
import { continuumCommand, indicesCommand, resampleCommand, smoothCommand } from './spectra.js';
import { anomalyCommand, mnfCommand, pcaCommand, statsCommand } from './statistics.js';
import { unmixCommand } from './unmix.js';

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
