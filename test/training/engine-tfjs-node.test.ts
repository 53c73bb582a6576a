import { it } from 'node:test';
import { engineContract, reasonToSkip } from './engine-contract.js';

const reason = await reasonToSkip('tfjs-node');
if (reason === undefined) engineContract('tfjs-node');
else it('training engine tfjs-node', { skip: reason });
