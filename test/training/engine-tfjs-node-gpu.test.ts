import { it } from 'node:test';
import { engineContract, reasonToSkip } from './engine-contract.js';

const reason = await reasonToSkip('tfjs-node-gpu');
if (reason === undefined) engineContract('tfjs-node-gpu');
else it('training engine tfjs-node-gpu', { skip: reason });
